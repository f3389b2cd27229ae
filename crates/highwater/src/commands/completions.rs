//! `highwater completions SHELL`.

use clap::CommandFactory;

use crate::{
    args::{Args, CompletionArgs},
    exit::Exit,
    out,
};

pub(super) fn run(args: &CompletionArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "highwater", &mut script);
    out::data(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Complete)
}
