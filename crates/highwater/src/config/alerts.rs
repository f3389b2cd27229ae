//! The `[alerts]` section: who is told when something is wrong.

use secrecy::SecretString;
use toml::Value;

use super::reader::Reader;

#[derive(Clone, Debug, Default)]
pub(crate) struct AlertsConfig {
    pub(crate) notify: NotifyConfig,
    /// Bytes the books about a mirror may take up.
    pub(crate) control_budget: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct NotifyConfig {
    /// Whoever knows such a URL may use it.
    pub(crate) webhook: Option<SecretString>,
    pub(crate) smtp: Option<SmtpConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SmtpConfig {
    pub(crate) url: String,
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    /// The environment variable that has the password.
    pub(crate) password_env: Option<String>,
}

pub(super) fn parse(section: Option<Reader>) -> Result<AlertsConfig, String> {
    let Some(mut section) = section else { return Ok(AlertsConfig::default()) };
    let webhook = section.string("webhook")?.map(SecretString::from);
    let smtp = parse_smtp(&mut section)?;
    let control_budget = section.size("control_budget")?;
    section.finish()?;
    Ok(AlertsConfig { notify: NotifyConfig { webhook, smtp }, control_budget })
}

fn parse_smtp(section: &mut Reader) -> Result<Option<SmtpConfig>, String> {
    let url = section.string("smtp")?;
    let from = section.string("from")?;
    let to = section.read("to", "an address or a list of addresses", addresses)?;
    let password_env = section.string("password_env")?;
    let Some(url) = url else {
        let needs_smtp = from.is_some() || to.is_some() || password_env.is_some();
        return if needs_smtp { Err(missing(section, "smtp")) } else { Ok(None) };
    };
    let from = from.ok_or_else(|| missing(section, "from"))?;
    let to = to.ok_or_else(|| missing(section, "to"))?;
    Ok(Some(SmtpConfig { url, from, to, password_env }))
}

fn missing(section: &Reader, key: &str) -> String {
    format!("{} is missing: mail needs smtp, from and to", section.path_of(key))
}

fn addresses(value: &Value) -> Option<Vec<String>> {
    let list = match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().map(|one| one.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        _ => return None,
    };
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<AlertsConfig, String> {
        Config::parse(&format!("[alerts]\n{text}")).map(|config| config.alerts)
    }

    #[test]
    fn alerts_go_nowhere_unless_told() {
        let alerts = Config::parse("").unwrap().alerts;
        assert!(alerts.notify.webhook.is_none() && alerts.notify.smtp.is_none() && alerts.control_budget.is_none());
    }

    #[test]
    fn a_webhook_and_mail_are_read() {
        let text = r#"
            webhook = "https://hooks.example/secret"
            smtp = "smtps://ann@mail.example:465"
            from = "highwater@mail.example"
            to = ["ann@mail.example", "bob@mail.example"]
            password_env = "SMTP_PASSWORD"
            control_budget = "2GB"
        "#;
        let alerts = parse(text).unwrap();
        assert_eq!(alerts.notify.webhook.as_ref().unwrap().expose_secret(), "https://hooks.example/secret");
        assert!(!format!("{alerts:?}").contains("secret"));
        let smtp = alerts.notify.smtp.unwrap();
        assert_eq!((smtp.to.len(), smtp.password_env.as_deref()), (2, Some("SMTP_PASSWORD")));
        assert_eq!(alerts.control_budget, Some(2_000_000_000));
        let one = "smtp = 'smtp://localhost'\nfrom = 'a@b.example'\nto = 'c@d.example'";
        assert_eq!(parse(one).unwrap().notify.smtp.unwrap().to, ["c@d.example"]);
    }

    #[test]
    fn half_a_mail_is_refused() {
        let error = |text| parse(text).unwrap_err();
        assert_eq!(error("from = 'a@b.example'"), "alerts.smtp is missing: mail needs smtp, from and to");
        assert_eq!(
            error("smtp = 'smtp://h'\nfrom = 'a@b.example'"),
            "alerts.to is missing: mail needs smtp, from and to"
        );
        assert!(
            error("smtp = 'smtp://h'\nfrom = 'a@b.example'\nto = []").starts_with("alerts.to: expected an address")
        );
        assert_eq!(error("webhok = 'x'"), "unknown key 'alerts.webhok'; did you mean 'webhook'?");
        assert!(error("control_budget = 5").starts_with("alerts.control_budget: expected a size such as"));
    }
}
