//! The consent of a person in a browser: the page to send them to, and what their browser brings back.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{READONLY, Secret, form};

/// Bytes of chance that a consent needs, half of them for the verifier: 43 characters, the fewest that are allowed.
pub const ENTROPY: usize = 64;

/// One question to one person, and how its answer is known again.
pub struct Consent {
    pub redirect_uri: String,
    pub verifier: Secret,
    state: Secret,
}

/// What a request to the redirect address says.
#[derive(Debug, PartialEq)]
pub enum Redirected {
    Code(Secret),
    /// The person, or a rule of theirs, said no: Google's word for it.
    Denied(String),
    /// Not the answer to our question.
    Stranger,
}

impl Consent {
    /// `entropy` must be of the kind that nobody can guess.
    pub fn new(redirect_uri: String, entropy: &[u8; ENTROPY]) -> Self {
        let text = |bytes: &[u8]| Secret::new(URL_SAFE_NO_PAD.encode(bytes));
        let (verifier, state) = entropy.split_at(ENTROPY / 2);
        Consent { redirect_uri, verifier: text(verifier), state: text(state) }
    }

    /// Where the person is sent. A refresh token comes with the first consent only, unless consent is asked for anew.
    pub fn url(&self, auth_url: &str, client_id: &str) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.expose().as_bytes()));
        let query = form::encode(&[
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", READONLY),
            ("state", self.state.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("access_type", "offline"),
            ("prompt", "consent"),
        ]);
        format!("{auth_url}{}{query}", if auth_url.contains('?') { '&' } else { '?' })
    }

    /// Reads path and query of a request to the redirect address.
    pub fn read(&self, target: &str) -> Redirected {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        if form::value(query, "state").as_deref() != Some(self.state.expose()) {
            return Redirected::Stranger;
        }
        match (form::value(query, "code"), form::value(query, "error")) {
            (_, Some(error)) => Redirected::Denied(word(&error)),
            (Some(code), None) => Redirected::Code(Secret::new(code)),
            (None, None) => Redirected::Stranger,
        }
    }
}

/// A code as the standard has it; anything else is not repeated.
pub(super) fn word(code: &str) -> String {
    let is_word = (1..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_word { code.to_owned() } else { "an unknown error".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consent() -> Consent {
        Consent::new("http://127.0.0.1:7".into(), &std::array::from_fn(|index| index as u8))
    }

    #[test]
    fn the_page_is_asked_with_a_challenge_and_a_state() {
        let consent = consent();
        let verifier = consent.verifier.expose();
        assert_eq!((verifier, verifier.len()), ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", 43));
        // printf %s "$verifier" | openssl dgst -sha256 -binary | basenc --base64url
        let expected = "https://a/auth?response_type=code&client_id=id&redirect_uri=http%3A%2F%2F127.0.0.1%3A7\
            &scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgmail.readonly\
            &state=ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8\
            &code_challenge=6oZqdX5MOLq_qBJ8vppAnT4fk6AP8UiP9zX8-Rev_9A&code_challenge_method=S256&access_type=offline&prompt=consent";
        assert_eq!(consent.url("https://a/auth", "id"), expected);
    }

    #[test]
    fn only_an_answer_with_our_state_counts() {
        let (consent, state) = (consent(), "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8");
        let read = |query: &str| consent.read(&format!("/?{query}"));
        assert_eq!(read(&format!("state={state}&code=4%2Fx&scope=a")), Redirected::Code(Secret::new("4/x")));
        assert_eq!(read(&format!("error=access_denied&state={state}")), Redirected::Denied("access_denied".into()));
        let odd = read(&format!("error=<script>&state={state}"));
        assert_eq!(odd, Redirected::Denied("an unknown error".into()));
        for stranger in ["code=x", "code=x&state=guess", "error=access_denied", &format!("state={state}"), ""] {
            assert_eq!(read(stranger), Redirected::Stranger, "{stranger}");
        }
        assert_eq!(consent.read("/favicon.ico"), Redirected::Stranger);
    }
}
