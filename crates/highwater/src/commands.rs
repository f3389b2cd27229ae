//! One file per verb.

mod auth;
mod completions;
mod dead_letters;
mod demo;
mod init;
mod ledger;
mod search;
mod serve;
mod simulate;
mod status;
mod store;
mod sync;
mod verify;

use crate::{
    args::{Args, Command},
    exit::Exit,
};

pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let global = &args.global;
    match args.command {
        Command::Init(args) => init::run(global, &args),
        Command::Auth(args) => auth::run(global, &args).await,
        Command::Sync(args) => sync::run(global, &args).await,
        Command::Serve(args) => serve::run(global, &args).await,
        Command::Status(args) => status::run(global, &args).await,
        Command::Verify(args) => verify::run(global, &args).await,
        Command::DeadLetters(args) => dead_letters::run(global, args.verb).await,
        Command::Search(args) => search::run(global, &args).await,
        Command::Ledger(args) => ledger::run(global, &args).await,
        Command::Store(args) => store::run(global, args.verb).await,
        Command::Simulate(args) => simulate::run(global, &args).await,
        Command::Demo(args) => demo::run(global, &args).await,
        Command::Completions(args) => completions::run(&args),
    }
}
