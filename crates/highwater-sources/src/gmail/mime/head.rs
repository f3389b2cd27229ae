//! What the header of a part says about its content.

use super::{charset, fields::Fields, fields::without_brackets, params::Value, problem::Problems, transfer::Encoding};

pub(super) struct Head {
    /// In lower case, always with a slash.
    pub(super) mime_type: String,
    pub(super) charset: Option<String>,
    pub(super) boundary: Option<String>,
    pub(super) filename: Option<String>,
    pub(super) disposition: Disposition,
    pub(super) encoding: Encoding,
    pub(super) content_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Unsaid,
    Inline,
    Attachment,
}

impl Head {
    /// `default` is the type of a part that does not say one.
    pub(super) fn read(header: &[u8], default: &str, problems: &mut Problems) -> Self {
        let fields = Fields::read(header, problems);
        let content_type = fields.first("content-type").map(Value::parse);
        let disposition = fields.first("content-disposition").map(Value::parse);
        let param = |name| content_type.as_ref().and_then(|value| value.param(name)).filter(|text| !text.is_empty());
        let filename = disposition.as_ref().and_then(|value| value.param("filename"));
        Head {
            mime_type: content_type.as_ref().map_or_else(|| default.to_owned(), |value| mime_type(&value.token)),
            charset: param("charset"),
            boundary: param("boundary"),
            filename: filename.filter(|name| !name.is_empty()).or_else(|| param("name")).map(charset::clean),
            disposition: disposition.map_or(Disposition::Unsaid, |value| Disposition::of(&value.token)),
            encoding: Encoding::of(fields.first("content-transfer-encoding").unwrap_or("")),
            content_id: fields.first("content-id").map(without_brackets).filter(|id| !id.is_empty()),
        }
    }

    pub(super) fn is_multipart(&self) -> bool {
        self.mime_type.starts_with("multipart/")
    }
}

/// What is no type is text, as if nothing had been said (RFC 2045, 5.2).
fn mime_type(token: &str) -> String {
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    let token = token.trim_matches(['"', '\'']);
    match token.split_once('/') {
        Some((kind, subtype)) if is_word(kind) && is_word(subtype) => token.to_owned(),
        None if token == "multipart" => "multipart/mixed".into(),
        None if token == "html" => "text/html".into(),
        _ => "text/plain".into(),
    }
}

impl Disposition {
    /// What is not known is handed over as a file (RFC 2183, 2.8).
    fn of(token: &str) -> Self {
        match token {
            "" => Disposition::Unsaid,
            "inline" => Disposition::Inline,
            _ => Disposition::Attachment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_a_type() {
        for (token, expected) in [
            ("text/html", "text/html"),
            ("\"text/html\"", "text/html"),
            ("application/x-y.z+json", "application/x-y.z+json"),
            ("multipart", "multipart/mixed"),
            ("text", "text/plain"),
            ("a/b/c", "text/plain"),
            ("/", "text/plain"),
            ("", "text/plain"),
            ("k\u{f6}ln/x", "text/plain"),
        ] {
            assert_eq!(mime_type(token), expected, "{token:?}");
        }
    }

    #[test]
    fn a_file_is_named_by_its_disposition_first() {
        let header =
            b"Content-Type: a/b; name=type.txt\r\nContent-Disposition: INLINE; filename=\"dis\0position.txt\"\r\n\
            Content-Id: <1@x>\r\n";
        let head = Head::read(header, "text/plain", &mut Problems::default());
        assert_eq!(head.filename.as_deref(), Some("dis\u{fffd}position.txt"));
        assert_eq!((head.disposition, head.content_id.as_deref()), (Disposition::Inline, Some("1@x")));
        let head = Head::read(
            b"Content-Type: a/b; name=type.txt\r\nContent-Disposition: odd\r\n",
            "",
            &mut Problems::default(),
        );
        assert_eq!((head.filename.as_deref(), head.disposition), (Some("type.txt"), Disposition::Attachment));
    }
}
