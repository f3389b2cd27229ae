//! `cargo xtask tidy`: rules of this repository that no compiler checks. This file gathers the files and reports; the
//! rules themselves are pure functions from a file to findings.

mod exceptions;
mod manifests;
mod names;
mod spawns;
mod text;

use std::{fmt, fs, io};

use anyhow::{Context, ensure};

use self::exceptions::{EXCEPTIONS, Exception};
use crate::workspace::{Workspace, read};

/// A text file of the repository.
struct File {
    /// From the root, with `/` on every system.
    path: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Header,
    Length,
    FileName,
    LeftOver,
    Whitespace,
    Arrow,
    WorkspaceDependency,
    Spawn,
    /// Of the table of exceptions itself.
    Exception,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    rule: Rule,
    path: String,
    /// Counted from 1; none if it is about the whole file.
    line: Option<usize>,
    text: String,
}

const CHECKS: [fn(&File) -> Vec<Finding>; 8] = [
    text::header,
    text::length,
    text::left_overs,
    text::whitespace,
    names::names,
    manifests::arrows,
    manifests::workspace_dependencies,
    spawns::spawns,
];

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<()> {
    let files = files(workspace)?;
    let findings = check_all(&files, EXCEPTIONS);
    for finding in &findings {
        eprintln!("{finding}");
    }
    ensure!(findings.is_empty(), "{} findings in {} files", findings.len(), files.len());
    Ok(())
}

fn check_all(files: &[File], exceptions: &[Exception]) -> Vec<Finding> {
    let found = files.iter().flat_map(|file| CHECKS.iter().flat_map(|check| check(file)));
    let (excused, mut findings): (Vec<_>, Vec<_>) =
        found.partition(|finding| exceptions.iter().any(|exception| exception.covers(finding)));
    findings.extend(exceptions::unused(exceptions, &excused));
    findings
}

/// What git tracks or would add, so that a file is checked before its first commit.
fn files(workspace: &Workspace) -> anyhow::Result<Vec<File>> {
    let mut command = workspace.command("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
    let listing = read(&mut command)?;
    let paths = listing.split_terminator('\0');
    paths.filter_map(|path| open(workspace, path).transpose()).collect()
}

/// None for what is no text, and for what is deleted but not yet committed so.
fn open(workspace: &Workspace, path: &str) -> anyhow::Result<Option<File>> {
    match fs::read(workspace.root().join(path)) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok().map(|text| File { path: path.to_owned(), text })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn finding(&self, rule: Rule, line: Option<usize>, text: impl Into<String>) -> Finding {
        Finding { rule, path: self.path.clone(), line, text: text.into() }
    }

    /// With their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

impl Rule {
    const fn as_str(self) -> &'static str {
        match self {
            Rule::Header => "header",
            Rule::Length => "length",
            Rule::FileName => "file name",
            Rule::LeftOver => "left over",
            Rule::Whitespace => "whitespace",
            Rule::Arrow => "arrow",
            Rule::WorkspaceDependency => "workspace dependency",
            Rule::Spawn => "spawn",
            Rule::Exception => "exception",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { rule, path, line, text } = self;
        match line {
            Some(line) => write!(f, "{path}:{line}: {}: {text}", rule.as_str()),
            None => write!(f, "{path}: {}: {text}", rule.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One file through one check, findings as printed.
    pub(super) fn check(check: fn(&File) -> Vec<Finding>, path: &str, text: &str, expect: &[&str]) {
        let file = File { path: path.into(), text: text.into() };
        let found: Vec<_> = check(&file).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn an_exception_covers_its_own_rule_only() {
        let file = || File { path: "crates/a/src/lib.rs".into(), text: "fn f() {} \n".into() };
        let exception = Exception { rule: Rule::Header, path: "crates/a/src/lib.rs", reason: "old" };
        let found = check_all(&[file()], &[exception]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, Rule::Whitespace);
    }

    #[test]
    fn an_exception_nobody_needs_is_found() {
        let exception = Exception { rule: Rule::Spawn, path: "gone.rs", reason: "old" };
        let found: Vec<_> = check_all(&[], &[exception]).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["gone.rs: exception: `spawn` is not needed here any more"]);
    }
}
