//! `highwater init`: a commented configuration.

use std::{fs::OpenOptions, io::Write};

use serde_json::json;

use crate::{
    args::{Global, InitArgs},
    config::FILE_NAME,
    exit::{Exit, Trouble},
    out,
};

const SAMPLE: &str = include_str!("../config/sample.toml");

pub(super) fn run(global: &Global, args: &InitArgs) -> anyhow::Result<Exit> {
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let path = args.path.clone().or_else(|| global.config()).unwrap_or_else(|| FILE_NAME.into());
    let shown = path.display();
    let mut file = options.open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Trouble::usage(format!("{shown} exists already")).hint("--force overwrites it")
        }
        _ => Trouble::usage(format!("cannot write {shown}: {error}")),
    })?;
    file.write_all(SAMPLE.as_bytes())?;
    if global.json {
        out::data(&json!({ "written": shown.to_string() }).to_string());
    } else if !global.quiet {
        out::data(&format!("wrote {shown}; next: highwater sync hn --last 10000"));
    }
    Ok(Exit::Complete)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    use super::*;

    #[test]
    fn the_sample_parses_with_and_without_its_comments() {
        Config::parse(SAMPLE).unwrap();
        let uncommented: String = SAMPLE
            .lines()
            .skip(1)
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        Config::parse(&uncommented).unwrap();
    }
}
