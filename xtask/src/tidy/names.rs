//! Names of files: each says what the file owns.

use super::{File, Finding, Rule};

/// Names for files that own nothing in particular, and so come to own everything.
const VAGUE: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

pub(super) fn names(file: &File) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or(&file.path);
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let mut findings = Vec::new();
    if name == "mod.rs" {
        findings.push(file.finding(Rule::FileName, None, "a module `name` lives in `name.rs` beside `name/`"));
    }
    if extension == "rs" && stem.split('_').any(|word| VAGUE.contains(&word)) {
        findings.push(file.finding(Rule::FileName, None, format!("`{stem}` does not say what the file owns")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, names};

    #[test]
    fn a_vague_name_is_found_as_a_word_of_its_own() {
        check(names, "a/utils.rs", "", &["a/utils.rs: file name: `utils` does not say what the file owns"]);
        check(
            names,
            "a/lease_manager.rs",
            "",
            &["a/lease_manager.rs: file name: `lease_manager` does not say what the file owns"],
        );
        check(names, "a/commons.rs", "", &[]);
        check(names, "a/common.md", "", &[]);
    }

    #[test]
    fn a_module_has_no_mod_file() {
        check(names, "a/mod.rs", "", &["a/mod.rs: file name: a module `name` lives in `name.rs` beside `name/`"]);
    }
}
