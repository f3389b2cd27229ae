//! The text of a piece of HTML, for people and for an index. Any bytes are read as something, in one pass.

use mail_parser::decoders::html::add_html_token;

/// What is within is not shown. Not `head`, which need not be closed: what is in it are these.
const HIDDEN: [&str; 4] = ["script", "style", "template", "title"];
/// What does not end a word. All other tags do: cells of a table must not grow together.
const INLINE: [&str; 24] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "mark", "s", "samp", "small", "span", "strong", "u", "wbr",
];
const ENTITY_MAX: usize = 32;
const TAG_MAX: usize = 16;

pub(crate) fn to_text(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        let found = &rest[at..];
        let length = if found.starts_with('&') { entity(found, &mut text) } else { markup(found, &mut text) };
        rest = &found[length..];
    }
    text.push_str(rest);
    text
}

/// Adds what an entity stands for; how long it is.
fn entity(html: &str, text: &mut String) -> usize {
    let end = html.bytes().take(ENTITY_MAX).position(|byte| byte == b';');
    let is_name = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
    match end.map(|end| &html.as_bytes()[..=end]) {
        Some(token) if token.len() > 2 && is_name(&token[1..token.len() - 1]) => {
            add_html_token(text, token, false);
            token.len()
        }
        _ => {
            text.push('&');
            1
        }
    }
}

/// How long a tag or comment is, with what it hides.
fn markup(html: &str, text: &mut String) -> usize {
    if html.starts_with("<!--") {
        return html.find("-->").map_or(html.len(), |end| end + 3);
    }
    let name = html[1..].trim_start_matches('/');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
        text.push('<');
        return 1;
    }
    let tag: String = name.chars().take(TAG_MAX).take_while(char::is_ascii_alphanumeric).collect();
    let tag = tag.to_ascii_lowercase();
    let end = html.find('>').map_or(html.len(), |end| end + 1);
    if HIDDEN.contains(&tag.as_str()) && !html.starts_with("</") {
        text.push(' ');
        return end + hidden(&html[end..], &tag);
    }
    if !INLINE.contains(&tag.as_str()) {
        text.push('\n');
    }
    end
}

/// Up to the tag that ends it, or to the end of everything.
fn hidden(html: &str, tag: &str) -> usize {
    let mut from = 0;
    while let Some(at) = html[from..].find("</") {
        let name = from + at + 2;
        if html.get(name..name + tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag)) {
            return html[name..].find('>').map_or(html.len(), |end| name + end + 1);
        }
        from = name;
    }
    html.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(html: &str) -> String {
        to_text(html).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tags_end_words_unless_they_stand_within_them() {
        assert_eq!(words("one<p>two<br>thr<b>ee</b><td>4</td><td>5</td>"), "one two three 4 5");
        assert_eq!(words("<div title=\"no\">yes</div><!-- no > no --><SCRIPT>no</b></Script >also"), "yes also");
        assert_eq!(words("<head><title>no</title></head>body"), "body");
        assert_eq!(words("<html><head><meta charset=utf-8><body>kept"), "kept");
        assert_eq!(words("<style>never closed"), "");
    }

    #[test]
    fn entities_are_what_they_stand_for_and_anything_else_is_itself() {
        assert_eq!(
            words("don&#x27;t &lt;b&gt; caf&eacute; &amp;&nbsp;AT&T & a<3 &nosuch; &#xd800;"),
            "don't <b> café & AT&T & a<3 &nosuch; \u{fffd}"
        );
    }

    proptest! {
        #[test]
        fn any_html_is_read(html in "([a-zé <>&;#/!\"\\-]|<script|</script>|<!--|-->|&#x27;|\\PC){0,80}") {
            to_text(&html);
        }
    }
}
