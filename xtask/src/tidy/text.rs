//! Rules about the text of single files.

use super::{File, Finding, Rule};

const LINES_MAX: usize = 500;

/// Spelled without what makes them macros and attributes, or this file would find itself.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
const ATTRIBUTES: [&str; 1] = ["ignore"];

pub(super) fn header(file: &File) -> Vec<Finding> {
    let opens_well = ["//!", "#!"].iter().any(|start| file.text.starts_with(start));
    if !file.is_rust() || opens_well {
        return Vec::new();
    }
    vec![file.finding(Rule::Header, Some(1), "open with `//!`: what the file owns and what it must not do")]
}

pub(super) fn length(file: &File) -> Vec<Finding> {
    let count = file.text.lines().count();
    if count <= LINES_MAX {
        return Vec::new();
    }
    vec![file.finding(Rule::Length, None, format!("{count} lines; more than {LINES_MAX} is more than one concern"))]
}

pub(super) fn left_overs(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let macros = MACROS.iter().map(|name| format!("{name}!("));
    let patterns: Vec<_> = macros.chain(ATTRIBUTES.iter().map(|name| format!("#[{name}"))).collect();
    let found = |line: &str| patterns.iter().find(|pattern| line.contains(*pattern)).cloned();
    file.lines()
        .filter_map(|(number, line)| found(line).map(|pattern| (number, pattern)))
        .map(|(number, pattern)| file.finding(Rule::LeftOver, Some(number), format!("`{pattern}` is for drafts")))
        .collect()
}

pub(super) fn whitespace(file: &File) -> Vec<Finding> {
    let trailing = file.lines().filter(|(_, line)| line.ends_with([' ', '\t', '\r']));
    let mut findings: Vec<_> = trailing
        .map(|(number, _)| file.finding(Rule::Whitespace, Some(number), "whitespace at the end of the line"))
        .collect();
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(file.finding(Rule::Whitespace, None, "no newline at the end of the file"));
    }
    if file.text.ends_with("\n\n") {
        findings.push(file.finding(Rule::Whitespace, None, "empty lines at the end of the file"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    #[test]
    fn a_rust_file_opens_with_its_purpose() {
        check(header, "a.rs", "//! Owns a.\n", &[]);
        check(header, "a.rs", "#![cfg(unix)]\n", &[]);
        check(header, "a.md", "a\n", &[]);
        let finding = "a.rs:1: header: open with `//!`: what the file owns and what it must not do";
        check(header, "a.rs", "use b;\n", &[finding]);
        check(header, "a.rs", "", &[finding]);
    }

    #[test]
    fn a_long_file_is_found_whatever_it_is() {
        check(length, "a.md", &"line\n".repeat(500), &[]);
        let finding = "a.md: length: 501 lines; more than 500 is more than one concern";
        check(length, "a.md", &"line\n".repeat(501), &[finding]);
    }

    #[test]
    fn drafts_are_found_by_line() {
        let patterns = MACROS.map(|name| format!("{name}!(")).into_iter().chain(["#[".to_owned() + "ignore"]);
        for pattern in patterns {
            let text = format!("//! A.\n    {pattern}\n");
            check(left_overs, "a.rs", &text, &[&format!("a.rs:2: left over: `{pattern}` is for drafts")]);
            check(left_overs, "a.md", &text, &[]);
        }
        check(left_overs, "a.rs", "/// Nothing to do! (really)\n", &[]);
    }

    #[test]
    fn whitespace_is_found_at_the_end_of_lines_and_files() {
        check(whitespace, "a", "", &[]);
        check(whitespace, "a", "b\n", &[]);
        check(
            whitespace,
            "a",
            "b \nc",
            &["a:1: whitespace: whitespace at the end of the line", "a: whitespace: no newline at the end of the file"],
        );
        check(whitespace, "a", "b\n\n", &["a: whitespace: empty lines at the end of the file"]);
    }
}
