//! Whole mails: odd ones, hostile ones, and those that another program built.

mod built;
mod hostile;
mod odd;
mod parts;

use super::*;

/// Lines as they are on the wire.
fn mail(lines: &[&str]) -> Mail {
    read(lines.join("\r\n").as_bytes())
}

/// Number, type and name of each.
fn attachments(mail: &Mail) -> Vec<(&str, &str, &str)> {
    let attachments = mail.attachments.iter();
    attachments.map(|a| (a.part_id.as_str(), a.mime_type.as_str(), a.filename.as_deref().unwrap_or("-"))).collect()
}
