//! Who may start tasks and threads: the engine, which owns their end, and the exceptions in the table.

use super::{File, Finding, Rule};

const ENGINE: &str = "crates/highwater-engine/";

pub(super) fn spawns(file: &File) -> Vec<Finding> {
    if !file.is_rust() || !is_product(&file.path) || file.path.starts_with(ENGINE) {
        return Vec::new();
    }
    let findings = product_lines(&file.text).filter(|(_, line)| spawns_task(line));
    let text = "only the engine spawns; hand it a future, or await it here";
    findings.map(|(number, _)| file.finding(Rule::Spawn, Some(number), text)).collect()
}

/// Not a test, and not a tool.
fn is_product(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.contains("/tests/") && !path.ends_with("/tests.rs")
}

/// Up to the tests, which stand last.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.take_while(|(_, line)| *line != "#[cfg(test)]").filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// A call with an argument: `Command::spawn()` starts a process and has none.
fn spawns_task(line: &str) -> bool {
    line.match_indices("spawn(").any(|(at, call)| {
        let is_whole_word = !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        is_whole_word && !line[at + call.len()..].starts_with(')')
    })
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, spawns};

    const FOUND: &str = "spawn: only the engine spawns; hand it a future, or await it here";

    #[test]
    fn a_task_outside_the_engine_is_found() {
        let text = "//! A.\nfn f() {\n    tokio::spawn(async {});\n    tasks.spawn(work)\n}\n";
        let path = "crates/highwater-store/src/a.rs";
        check(spawns, path, text, &[&format!("{path}:3: {FOUND}"), &format!("{path}:4: {FOUND}")]);
        check(spawns, "crates/highwater-engine/src/a.rs", text, &[]);
        check(spawns, "crates/highwater-store/tests/a.rs", text, &[]);
        check(spawns, "crates/highwater-store/src/a/tests.rs", text, &[]);
        check(spawns, "bench/fetch/src/a.rs", text, &[]);
    }

    #[test]
    fn tests_comments_processes_and_blocking_work_may_stand() {
        let text = "//! spawn(a)\nlet child = Command::new(b).spawn()?;\nspawn_blocking(c).await;\nrespawn(d);\n\
                    #[cfg(test)]\nmod tests {\n    tokio::spawn(e);\n}\n";
        check(spawns, "crates/highwater-store/src/a.rs", text, &[]);
    }
}
