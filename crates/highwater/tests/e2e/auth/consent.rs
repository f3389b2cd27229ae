//! Consent in a browser that is a script: it follows where it is led, as browsers do.

use std::{fs, os::unix::fs::PermissionsExt, process::Command, time::Duration};

use super::Post;
use crate::support::{Done, Running, until};

impl Post {
    /// `highwater auth mail` with a browser that runs `script` on the address.
    fn consent_by(&self, script: &str) -> Done {
        let browser = self.home.write("browser.sh", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = self.home.command(&["auth", "mail", "--json"]);
        command.env("BROWSER", browser);
        self.home.launch(command).wait()
    }
}

/// The address it asks to be opened.
fn address(running: &Running) -> String {
    until("the address", Duration::from_secs(30), || {
        running.err().split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned)
    })
}

/// The page and its status, redirects followed.
fn visit(url: &str) -> String {
    let visited = Command::new("curl").args(["-sSL", "--max-time", "60", "-w", " %{http_code}", url]).output().unwrap();
    String::from_utf8(visited.stdout).unwrap()
}

#[test]
fn consent_in_the_browser_gives_credentials() {
    let post = Post::new();
    let done = post.consent_by("exec curl -sSL --max-time 60 -o page.html \"$1\"").exits(0);
    assert_eq!(done.json()["scopes"], serde_json::json!(["https://www.googleapis.com/auth/gmail.readonly"]));
    assert!(!done.err.contains("http"), "the address is not printed when a browser opens: {}", done.err);
    let page = fs::read_to_string(post.home.path("page.html")).unwrap();
    assert!(page.contains("You may close this page"), "{page}");
    post.expire();
    post.check().exits(0);
    // The sealed token is the one that consent gave, not the one that always works.
    assert_eq!(post.sim.stats()["messages_present"], 20);
}

#[test]
fn a_browser_that_fails_leaves_the_address_to_open_by_hand() {
    let post = Post::new();
    let browser = post.home.write("browser.sh", "#!/bin/sh\nexit 3\n");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
    for (variable, value) in [("BROWSER", browser.to_str().unwrap()), ("BROWSER", "/no/such/browser"), ("UNUSED", "")] {
        let mut command = post.home.command(&["auth", "mail"]);
        command.env(variable, value);
        let running = post.home.launch(command);
        assert!(visit(&address(&running)).ends_with(" 200"));
        running.wait().exits(0);
    }
}

#[test]
fn only_the_answer_to_our_question_counts() {
    let post = Post::new();
    let running = post.home.start(&["auth", "mail", "--no-browser"]);
    let address = address(&running);
    let port = address.split("127.0.0.1%3A").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let door = format!("http://127.0.0.1:{port}");
    for stranger in ["/favicon.ico", "/?code=stolen&state=guessed", "/?code=stolen", "/?error=access_denied"] {
        assert!(visit(&format!("{door}{stranger}")).ends_with(" 404"), "{stranger}");
    }
    for part in ["code_challenge_method=S256", "access_type=offline", "state=", "gmail.readonly"] {
        assert!(address.contains(part), "{part} is not in {address}");
    }
    visit(&address);
    running.wait().exits(0);
}

#[test]
fn consent_that_is_not_given_is_exit_code_4() {
    let post = Post::planned("[token]\nscopes = [\"https://www.googleapis.com/auth/gmail.labels\"]");
    let refused = post.consent_by("exec curl -sSL --max-time 60 -o page.html \"$1\"");
    refused.exits(4).complains(&["access_denied", "highwater auth mail"]);
}
