//! What the parts are to a reader: text of the mail, or files that came with it.

use super::{
    Attachment, charset,
    head::Disposition,
    problem::{Problem, Problems},
    structure::{Leaf, Message},
};

/// Of each body. Longer ones are logs and dumps.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// No charset needs more bytes for a character than four.
const CHARACTER_BYTES_MAX: usize = 4;
const BYTE_ORDER_MARK: char = '\u{feff}';

#[derive(Default)]
pub(super) struct Contents {
    pub(super) plain: Option<String>,
    pub(super) html: Option<String>,
    pub(super) attachments: Vec<Attachment>,
}

impl Contents {
    pub(super) fn read(message: &Message<'_>, problems: &mut Problems) -> Self {
        let mut contents = Contents::default();
        for leaf in &message.leaves {
            contents.add(leaf, problems);
        }
        contents
    }

    fn add(&mut self, leaf: &Leaf<'_>, problems: &mut Problems) {
        let text = match leaf.head.mime_type.as_str() {
            "text/plain" => Some(&mut self.plain),
            "text/html" => Some(&mut self.html),
            _ => None,
        };
        let is_attachment = is_attachment(leaf);
        if let Some(text) = text.filter(|_| !is_attachment || is_named_root(leaf)) {
            append(text, leaf, problems);
        }
        if is_attachment {
            self.attachments.push(attachment(leaf, problems));
        }
    }
}

fn is_attachment(leaf: &Leaf<'_>) -> bool {
    let head = &leaf.head;
    let is_file = matches!(
        head.mime_type.as_str(),
        "message/rfc822" | "message/global" | "text/calendar" | "application/ms-tnef" | "application/vnd.ms-tnef"
    );
    let is_picture = head.mime_type.starts_with("image/") && head.content_id.is_some();
    is_file || is_picture || head.filename.is_some() || head.disposition == Disposition::Attachment
}

/// All there is of some mail is a text with a name: it is what the mail says all the same.
fn is_named_root(leaf: &Leaf<'_>) -> bool {
    leaf.is_root && leaf.head.disposition != Disposition::Attachment
}

fn attachment(leaf: &Leaf<'_>, problems: &mut Problems) -> Attachment {
    let head = &leaf.head;
    let is_inline = match head.disposition {
        Disposition::Unsaid => head.content_id.is_some(),
        said => said == Disposition::Inline,
    };
    Attachment {
        part_id: leaf.id.clone(),
        filename: head.filename.clone(),
        mime_type: head.mime_type.clone(),
        content: head.encoding.decode(leaf.body, problems).into_owned(),
        content_id: head.content_id.clone(),
        is_inline,
    }
}

/// With a blank line between this text and the one before.
fn append(body: &mut Option<String>, leaf: &Leaf<'_>, problems: &mut Problems) {
    let bytes = leaf.head.encoding.decode(leaf.body, problems);
    let text = text(&bytes, leaf.head.charset.as_deref(), problems);
    match body {
        None => *body = Some(text),
        Some(_) if text.is_empty() => {}
        Some(body) => {
            body.push_str(if body.is_empty() || body.ends_with('\n') { "\n" } else { "\n\n" });
            body.push_str(&text);
        }
    }
    if let Some(body) = body.as_mut().filter(|body| body.len() > TEXT_BYTES_MAX) {
        body.truncate(body.floor_char_boundary(TEXT_BYTES_MAX));
        problems.note(Problem::TextTooLong);
    }
}

fn text(bytes: &[u8], charset: Option<&str>, problems: &mut Problems) -> String {
    let bytes = &bytes[..bytes.len().min(TEXT_BYTES_MAX * CHARACTER_BYTES_MAX)];
    let known = charset.and_then(|charset| charset::decode(bytes, charset));
    if let (Some(unknown), None) = (charset, &known) {
        problems.note(Problem::unknown_charset(unknown));
    }
    let mut text = known.unwrap_or_else(|| charset::guess(bytes));
    if text.starts_with(BYTE_ORDER_MARK) {
        text.remove(0);
    }
    text
}
