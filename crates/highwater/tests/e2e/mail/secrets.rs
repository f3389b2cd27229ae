//! What the commands say, however much they are asked to say, shows nothing of the mail.

use std::collections::BTreeSet;

use super::desk::{Desk, FAST};
use crate::support::{Sim, Tables};

const PLAN: &str = r#"
[shares]
odd = 0.2
[token]
failures = 0.2
[rates]
500 = 0.02
401 = 0.02
failed-precondition = 0.02
raw-undecodable = 0.02
cut-json = 0.01
[[script]]
share = 0.02
then = "raw-missing"
"#;
const TOKENS: [&str; 4] = ["ya29.", "sim-refresh-token", "sim-secret", "sim-access-token"];
/// Shorter texts are words that appear anyway, unless they are addresses.
const TELLING: usize = 16;

#[test]
fn nothing_of_the_mail_is_said() {
    let desk = Desk::new(Sim::gmail_planned(400, PLAN), &format!("{FAST}attempts = 3\n"));
    let mut said = String::new();
    for command in [
        &["sync", "mail", "-vv"][..],
        &["sync", "mail", "-vv", "--json"],
        &["status", "-vv"],
        &["dead-letters", "list", "mail", "-vv"],
        &["ledger", "mail", "-vv"],
    ] {
        let done = desk.home.run(command);
        said.push_str(&done.out);
        said.push_str(&done.err);
    }
    assert!(said.len() > 1_000, "{said}");
    for secret in TOKENS.map(str::to_owned).into_iter().chain(private(&desk)) {
        assert!(!said.contains(&secret), "{secret:?} is said");
    }
}

fn private(desk: &Desk) -> BTreeSet<String> {
    let sql = "SELECT subject FROM mail_messages UNION SELECT from_email FROM mail_messages
        UNION SELECT from_name FROM mail_messages UNION SELECT substr(body_plain, 1, 20) FROM mail_messages
        UNION SELECT provider_email FROM mailboxes UNION SELECT filename FROM mail_attachments";
    let texts = desk.database().cells(sql).into_iter().filter_map(|row| row[0].as_str().map(str::to_owned));
    texts.filter(|text| text.trim().len() >= TELLING || text.contains('@')).collect()
}
