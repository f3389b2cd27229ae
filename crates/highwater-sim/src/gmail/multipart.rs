//! Bodies in parts (`multipart/mixed`, `multipart/related`): taken apart byte for byte, whichever line ends their writer
//! likes.

pub(super) struct Piece<'a> {
    head: &'a [u8],
    pub(super) body: &'a [u8],
}

impl Piece<'_> {
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(self.head);
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }
}

/// `None` if the type names no boundary.
pub(super) fn split<'a>(content_type: &str, body: &'a [u8]) -> Option<Vec<Piece<'a>>> {
    let (_, boundary) = content_type.split_once("boundary=")?;
    let boundary = boundary.split(';').next().unwrap_or("").trim().trim_matches('"');
    let mark = format!("--{boundary}");
    let (mut pieces, mut start, mut at) = (Vec::new(), None, 0);
    while at < body.len() {
        let end = body[at..].iter().position(|byte| *byte == b'\n').map_or(body.len(), |len| at + len + 1);
        if let Some(rest) = body[at..end].strip_prefix(mark.as_bytes()) {
            if let Some(start) = start {
                pieces.push(piece(without_line_end(&body[start..at])));
            }
            start = (!rest.starts_with(b"--")).then_some(end);
        }
        at = end;
    }
    Some(pieces)
}

/// Head and body, at the first empty line.
pub(super) fn piece(bytes: &[u8]) -> Piece<'_> {
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return Piece { head: &bytes[..at], body: &bytes[end..] };
        }
        at = end;
    }
    Piece { head: bytes, body: &[] }
}

/// The last line end belongs to the boundary.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r\n").or_else(|| bytes.strip_suffix(b"\n")).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_bytes_with_either_line_end() {
        let crlf =
            "preamble\r\n--b\r\nContent-Type: a/b\r\nContent-ID: <x>\r\n\r\none\r\n\r\n--b\r\n\r\ntwo\r\n--b--\r\nend";
        for text in [crlf.to_owned(), crlf.replace("\r\n", "\n")] {
            let pieces = split("multipart/mixed; boundary=\"b\"", text.as_bytes()).unwrap();
            assert_eq!(pieces.len(), 2);
            assert_eq!(pieces[0].header("content-id").as_deref(), Some("<x>"));
            assert_eq!(pieces[0].body, if text.contains('\r') { &b"one\r\n"[..] } else { b"one\n" });
            assert_eq!((pieces[1].body, pieces[1].header("content-id")), (&b"two"[..], None));
        }
        assert!(split("multipart/mixed", b"").is_none());
    }

    #[test]
    fn a_mail_with_its_own_line_ends_survives_a_writer_with_others() {
        let pieces = split("multipart/related; boundary=b", b"--b\n\nSubject: a\r\n\r\nbody\r\n\n--b--\n").unwrap();
        assert_eq!(pieces[0].body, b"Subject: a\r\n\r\nbody\r\n");
    }
}
