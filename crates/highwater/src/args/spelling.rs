//! One word for two things: `--store URL` chooses the store of any command, `verify --store` checks its files. What
//! follows the flag tells which is meant, and clap is given a word of its own for the check.

use std::ffi::OsString;

/// The bare `--store` of `verify`, as clap knows it.
pub(super) const CHECK_FILES: &str = "check-files";

const SQLITE: &str = "sqlite:";

/// The arguments of a process, its own name first, with a bare `--store` of `verify` replaced.
pub(super) fn resolve(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args = args.into_iter().peekable();
    let mut resolved: Vec<OsString> = args.next().into_iter().collect();
    let mut command: Option<OsString> = None;
    while let Some(arg) = args.next() {
        let is_verify = command.as_deref().is_some_and(|command| command == "verify");
        match arg.to_str() {
            Some("--") => {
                resolved.push(arg);
                resolved.extend(args);
                break;
            }
            Some("--store") if is_verify && !args.peek().is_some_and(is_store_url) => {
                resolved.push(format!("--{CHECK_FILES}").into());
            }
            Some("--store" | "--config") => {
                resolved.push(arg);
                resolved.extend(args.next());
            }
            Some(text) if command.is_none() && !text.starts_with('-') => {
                command = Some(arg.clone());
                resolved.push(arg);
            }
            _ => resolved.push(arg),
        }
    }
    resolved
}

fn is_store_url(arg: &OsString) -> bool {
    arg.to_str().is_some_and(|text| text.starts_with(SQLITE) || text.contains("://"))
}
