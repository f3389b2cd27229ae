//! Rules about `Cargo.toml`: which crate may know which, and that versions are chosen in one place.

use toml::{Table, Value};

use super::{File, Finding, Rule};

/// Who may be known by whom. A crate that is not listed may know nobody of the workspace. Tests may know everybody.
const ARROWS: &[(&str, &[&str])] = &[
    ("highwater-store", &["highwater-core"]),
    ("highwater-sources", &["highwater-core"]),
    ("highwater-engine", &["highwater-core", "highwater-store", "highwater-sources"]),
    ("highwater-sim", &["highwater-core", "highwater-store", "highwater-sources", "highwater-engine"]),
    ("highwater-web", &["highwater-core"]),
    (
        "highwater",
        &[
            "highwater-core",
            "highwater-store",
            "highwater-sources",
            "highwater-engine",
            "highwater-sim",
            "highwater-web",
        ],
    ),
    ("highwater-bench", &["highwater-core", "highwater-sources", "highwater-store"]),
    ("highwater-fuzz", &["highwater-sources"]),
    ("xtask", &["highwater-pg-server"]),
];

const PRODUCT_SECTIONS: [&str; 2] = ["dependencies", "build-dependencies"];
const ALL_SECTIONS: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];

pub(super) fn arrows(file: &File) -> Vec<Finding> {
    let Some(manifest) = manifest(file) else { return Vec::new() };
    let name = package_name(&manifest);
    let allowed = ARROWS.iter().find(|(from, _)| *from == name).map_or(&[][..], |(_, to)| to);
    let internal = dependencies(&manifest, &PRODUCT_SECTIONS).into_iter().filter(|(to, _)| to.starts_with("highwater"));
    internal
        .filter(|(to, _)| !allowed.contains(to))
        .map(|(to, _)| file.finding(Rule::Arrow, None, format!("{name} must not know {to}")))
        .collect()
}

pub(super) fn workspace_dependencies(file: &File) -> Vec<Finding> {
    let Some(manifest) = manifest(file) else { return Vec::new() };
    let own = dependencies(&manifest, &ALL_SECTIONS).into_iter().filter(|(_, value)| !is_from_workspace(value));
    own.map(|(name, _)| {
        file.finding(Rule::WorkspaceDependency, None, format!("`{name}` must be written `{name}.workspace = true`"))
    })
    .collect()
}

/// None for what is no manifest of a package, and for one that cargo itself refuses.
fn manifest(file: &File) -> Option<Table> {
    let is_manifest = file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml");
    let table: Table = if is_manifest { toml::from_str(&file.text).ok()? } else { return None };
    table.contains_key("package").then_some(table)
}

fn package_name(manifest: &Table) -> &str {
    manifest["package"].get("name").and_then(Value::as_str).unwrap_or("a package without a name")
}

/// Those for some platforms only are in sections of their own.
fn dependencies<'a>(manifest: &'a Table, sections: &[&str]) -> Vec<(&'a str, &'a Value)> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = std::iter::once(manifest).chain(targets.filter_map(|(_, target)| target.as_table()));
    let sections = tables.flat_map(|table| sections.iter().filter_map(|name| table.get(*name)?.as_table()));
    sections.flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

fn is_from_workspace(dependency: &Value) -> bool {
    dependency.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, *};

    const STORE: &str = "crates/highwater-store/Cargo.toml";

    fn manifest_of(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    #[test]
    fn store_and_sources_do_not_know_each_other() {
        let text = manifest_of("highwater-store", "[dependencies]\nhighwater-sources.workspace = true\n");
        let finding = format!("{STORE}: arrow: highwater-store must not know highwater-sources");
        check(arrows, STORE, &text, &[&finding]);
        let text = manifest_of("highwater-sources", "[dependencies]\nhighwater-store.workspace = true\n");
        check(arrows, "Cargo.toml", &text, &["Cargo.toml: arrow: highwater-sources must not know highwater-store"]);
    }

    #[test]
    fn the_core_knows_nobody_and_everybody_may_know_it() {
        let text = manifest_of("highwater-core", "[build-dependencies]\nhighwater-store.workspace = true\n");
        check(arrows, "Cargo.toml", &text, &["Cargo.toml: arrow: highwater-core must not know highwater-store"]);
        let text = manifest_of("highwater-store", "[dependencies]\nhighwater-core.workspace = true\n");
        check(arrows, STORE, &text, &[]);
    }

    #[test]
    fn an_arrow_for_one_platform_is_an_arrow() {
        let text = manifest_of("highwater-core", "[target.'cfg(unix)'.dependencies]\nhighwater.workspace = true\n");
        check(arrows, "Cargo.toml", &text, &["Cargo.toml: arrow: highwater-core must not know highwater"]);
    }

    #[test]
    fn versions_are_chosen_in_the_workspace() {
        let rest = "[dependencies]\na = \"1\"\nb.workspace = true\nc = { workspace = true, features = [] }\n\
                    [dev-dependencies]\nd = { path = \"d\" }\n";
        let must = |name| format!("{STORE}: workspace dependency: `{name}` must be written `{name}.workspace = true`");
        check(workspace_dependencies, STORE, &manifest_of("highwater-store", rest), &[&must("a"), &must("d")]);
        check(workspace_dependencies, "Cargo.toml", "[workspace.dependencies]\na = \"1\"\n", &[]);
        check(workspace_dependencies, "other.toml", &manifest_of("highwater-store", rest), &[]);
    }
}
