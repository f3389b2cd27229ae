//! An alert as a mail, over SMTP. The URL says how: `smtps://user@host:465` with TLS from the start,
//! `smtp://user@host:587?tls=required` with STARTTLS, `smtp://host:25` without.

use std::{
    env,
    net::IpAddr,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, bail, ensure};
use highwater_sources::port_of;
use http::Uri;
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::Mailbox,
    transport::smtp::{
        Error as SmtpError,
        authentication::Credentials,
        client::{Tls, TlsParameters},
    },
};

use super::{Note, Setback, TRY_MAX};
use crate::config::SmtpConfig;

pub(super) struct Mail {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    Tls,
    StartTls,
    Plain,
}

#[derive(Debug, PartialEq, Eq)]
struct Server {
    security: Security,
    host: String,
    port: u16,
    user: Option<String>,
}

impl Mail {
    pub(super) fn new(config: &SmtpConfig) -> anyhow::Result<Self> {
        let server = Server::parse(&config.url).context("alerts.smtp")?;
        let password = config.password_env.as_deref().map(password).transpose()?;
        let mailbox = |address: &str, key: &str| {
            address.parse::<Mailbox>().with_context(|| format!("alerts.{key}: {address:?} is not an address"))
        };
        Ok(Mail {
            transport: server.transport(password)?,
            from: mailbox(&config.from, "from")?,
            to: config.to.iter().map(|address| mailbox(address, "to")).collect::<anyhow::Result<_>>()?,
        })
    }

    pub(super) async fn deliver(&self, note: &Note) -> Result<(), Setback> {
        let message = self.message(note).map_err(|_| Setback::lasting("the mail cannot be written"))?;
        self.transport.send(message).await.map(|_| ()).map_err(|error| setback(&error))
    }

    fn message(&self, note: &Note) -> Result<Message, lettre::error::Error> {
        let Note { condition, severity, state, message, source, at } = note;
        let sent_at = UNIX_EPOCH + Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(0));
        let builder = Message::builder()
            .from(self.from.clone())
            .date(sent_at)
            // The same for every try, so that a mail that arrives twice can be known as one.
            .message_id(Some(format!("<{at}.{source}.{condition}.{state}@highwater>")))
            .subject(format!("[highwater] {source}: {condition} {state} ({severity})"));
        let builder = self.to.iter().fold(builder, |builder, to| builder.to(to.clone()));
        builder.body(format!("{message}\n\nsource: {source}\ncondition: {condition}\nat: {}\n", note.at()))
    }
}

/// A server's words may name accounts; its numbers do not.
fn setback(error: &SmtpError) -> Setback {
    let reason = match error.status() {
        Some(code) => format!("the mail server answered {code}"),
        None if error.is_timeout() => "no answer of the mail server in time".into(),
        None if error.is_tls() => "no TLS with the mail server".into(),
        None if error.is_client() => "the mail server does not speak as we do".into(),
        None => "no connection to the mail server".into(),
    };
    if error.is_permanent() { Setback::lasting(reason) } else { Setback::passing(reason) }
}

fn password(variable: &str) -> anyhow::Result<String> {
    env::var(variable).ok().with_context(|| format!("alerts.password_env: the environment has no text {variable:?}"))
}

impl Server {
    fn parse(url: &str) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().ok().context("not a URL such as smtps://user@host:465")?;
        let security = match (uri.scheme_str(), uri.query()) {
            (Some("smtps"), None) => Security::Tls,
            (Some("smtp"), Some("tls=required")) => Security::StartTls,
            (Some("smtp"), None) => Security::Plain,
            (Some("smtp" | "smtps"), Some(_)) => bail!("after smtp:// only ?tls=required is known"),
            _ => bail!("expected smtp:// or smtps://"),
        };
        let authority = uri.authority().context("the host is missing")?;
        let user = authority.as_str().rsplit_once('@').map(|(user, _)| user);
        ensure!(
            user.is_none_or(|user| !user.contains(':')),
            "the password belongs into the variable password_env names"
        );
        let user = user.map(|user| percent_decoded(user).context("the user is not readable")).transpose()?;
        let usual = match security {
            Security::Tls => 465,
            Security::StartTls => 587,
            Security::Plain => 25,
        };
        let port = port_of(authority).map_err(anyhow::Error::msg)?.unwrap_or(usual);
        Ok(Server { security, host: authority.host().into(), port, user })
    }

    fn transport(&self, password: Option<String>) -> anyhow::Result<AsyncSmtpTransport<Tokio1Executor>> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let parameters = || TlsParameters::new(host.into()).context("alerts.smtp: TLS cannot be set up");
        let tls = match self.security {
            Security::Tls => Tls::Wrapper(parameters()?),
            Security::StartTls => Tls::Required(parameters()?),
            Security::Plain => Tls::None,
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host).port(self.port).tls(tls);
        let builder = builder.timeout(Some(TRY_MAX));
        Ok(match (self.user.clone(), password) {
            (Some(user), Some(password)) => {
                ensure!(self.may_log_in(), "alerts.smtp: a password is not sent without TLS");
                builder.credentials(Credentials::new(user, password)).build()
            }
            (None, None) => builder.build(),
            (Some(_), None) => bail!("alerts.password_env is missing: alerts.smtp names a user"),
            (None, Some(_)) => bail!("alerts.smtp names no user for the password: smtps://user@host"),
        })
    }

    fn may_log_in(&self) -> bool {
        let is_here = |host: &str| host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        self.security != Security::Plain || is_here(self.host.trim_matches(['[', ']']))
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Server {
        Server::parse(url).unwrap()
    }

    #[test]
    fn a_url_says_how_mail_is_sent() {
        let of = |url| {
            let Server { security, host, port, user } = server(url);
            (security, host, port, user)
        };
        let plain = |host: &str| host.to_owned();
        assert_eq!(of("smtps://ann@mail.example"), (Security::Tls, plain("mail.example"), 465, Some("ann".into())));
        let starttls = (Security::StartTls, plain("mail.example"), 587, Some("ann@mail.example".into()));
        assert_eq!(of("smtp://ann%40mail.example@mail.example?tls=required"), starttls);
        assert_eq!(of("smtps://ann@mail.example:"), of("smtps://ann@mail.example"));
        assert_eq!(of("smtp://localhost:2525"), (Security::Plain, plain("localhost"), 2525, None));
        for bad in [
            "",
            "mail.example",
            "http://mail.example",
            "smtp://h?tls=no",
            "smtps://ann:pw@h",
            "smtps://a%4@h",
            "smtps://h:99999",
            "smtps://a@h:0",
        ] {
            assert!(Server::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_goes_only_where_it_is_safe() {
        let open = |url, password: Option<&str>| server(url).transport(password.map(str::to_owned)).map(|_| ());
        assert!(open("smtp://ann@mail.example", Some("pw")).is_err());
        assert!(open("smtp://ann@127.0.0.1", Some("pw")).is_ok());
        assert!(open("smtp://mail.example", None).is_ok());
        open("smtps://ann@mail.example", Some("pw")).unwrap();
        open("smtp://ann@mail.example?tls=required", Some("pw")).unwrap();
        assert!(open("smtp://ann@localhost", None).is_err());
        assert!(open("smtp://localhost", Some("pw")).is_err());
    }
}
