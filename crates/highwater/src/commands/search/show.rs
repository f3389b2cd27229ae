//! What was found, for people and for scripts. Texts of strangers come cleaned; what has to stay exact is escaped, so that
//! nothing of it steers a terminal.

use std::{fmt::Write, io::IsTerminal};

use highwater_core::search::{Piece, cleaned};
use highwater_engine::{Findings, Indexed, Match};
use serde_json::{Value as Json, json};

use crate::out;

/// How a match is marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
}

impl Style {
    pub(super) fn of_stdout() -> Style {
        let has_colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        if has_colour { Style::Bold } else { Style::Plain }
    }

    fn show(self, pieces: &[Piece]) -> String {
        let show = |piece: &Piece| match (self, piece.is_match) {
            (Style::Bold, true) => format!("\u{1b}[1m{}\u{1b}[0m", piece.text),
            _ => piece.text.clone(),
        };
        pieces.iter().map(show).collect()
    }
}

pub(super) fn text(found: &Match, style: Style) -> String {
    let mut head = format!("{}/{} {}", found.source, found.stream, cleaned(&found.key.to_string()));
    head.extend(found.at.map(|at| format!("  {}", out::time(at))));
    head.extend(found.author.as_ref().map(|author| format!("  {author}")));
    let lines = [&found.title, &found.snippet].map(|pieces| style.show(pieces));
    lines.iter().filter(|line| !line.is_empty()).fold(head, |text, line| format!("{text}\n  {line}"))
}

pub(super) fn summary(findings: &Findings) -> String {
    let (shown, total) = (findings.matches.len() as u64, findings.total);
    match total {
        0 => "nothing found".into(),
        _ if shown < total => {
            format!("{} of {} matches; --limit shows more", out::grouped(shown), out::grouped(total))
        }
        1 => "1 match".into(),
        _ => format!("{} matches", out::grouped(total)),
    }
}

pub(super) fn json(query: &str, indexed: Indexed, findings: &Findings) -> String {
    let Indexed { documents, added, changed, removed } = indexed;
    let hits: Vec<Json> = findings.matches.iter().map(hit).collect();
    let indexed = json!({ "documents": documents, "added": added, "changed": changed, "removed": removed });
    escaped(&json!({ "query": query, "hits": hits, "total": findings.total, "indexed": indexed }).to_string())
}

fn hit(found: &Match) -> Json {
    let text = |pieces: &[Piece]| Style::Plain.show(pieces);
    let title = Some(text(&found.title)).filter(|title| !title.is_empty());
    let mut hit = json!({
        "source": found.source.as_str(),
        "kind": found.kind,
        "stream": found.stream,
        "key": found.key.to_string(),
        "at": found.at.map(|at| at.as_millis()),
        "title": title,
        "author": found.author,
        "snippet": text(&found.snippet),
    });
    for (name, fact) in &found.facts {
        hit[*name] = fact.clone();
    }
    hit
}

/// JSON lets stand some characters that a terminal obeys; they can only be within texts.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        let obeyed = c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if obeyed {
            write!(text, "\\u{:04x}", u32::from(c)).expect("a text takes everything");
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use highwater_core::{Key, Timestamp};

    use super::*;

    fn found() -> Match {
        let piece = |text: &str, is_match| Piece { text: text.into(), is_match };
        Match {
            source: "mail".parse().unwrap(),
            kind: "gmail",
            stream: "messages".into(),
            key: Key::from("18c\u{9b}"),
            at: Some(Timestamp::from_millis(1_700_000_000_000)),
            title: vec![piece("The report", false)],
            author: Some("Ann <ann@example.com>".into()),
            snippet: vec![piece("… a ", false), piece("word", true)],
            facts: vec![("thread", json!("t\u{202e}"))],
        }
    }

    #[test]
    fn a_match_is_bold_on_a_terminal_and_plain_elsewhere() {
        let plain = "mail/messages 18c  2023-11-14 22:13:20 UTC  Ann <ann@example.com>\n  The report\n  … a word";
        assert_eq!(text(&found(), Style::Plain), plain);
        assert!(text(&found(), Style::Bold).ends_with("… a \u{1b}[1mword\u{1b}[0m"));
    }

    #[test]
    fn json_is_exact_and_steers_nothing() {
        let findings = Findings { total: 1, matches: vec![found()] };
        let shown = json("a\u{9b}", Indexed::default(), &findings);
        assert!(!shown.contains(['\u{9b}', '\u{202e}']));
        let read: Json = serde_json::from_str(&shown).unwrap();
        assert_eq!((&read["query"], &read["hits"][0]["key"]), (&json!("a\u{9b}"), &json!("18c\u{9b}")));
        assert_eq!(
            (&read["hits"][0]["thread"], &read["hits"][0]["snippet"]),
            (&json!("t\u{202e}"), &json!("… a word"))
        );
    }
}
