//! What `highwater search` is told.

use clap::Args as ClapArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater search invoice march                   both words, anywhere
  highwater search '\"quarterly report\" -draft'     a phrase, and a word that must not be there
  highwater search 'rust OR zig compil*'           one of two words, and the beginning of a third
  highwater search from:ann subject:budget         mail by people and subject; also to:, by:, title:
  highwater search dropbox --source hn --limit 5   in one source, the best five

Put a query with quotes, * or -word into single quotes, and -- before one that begins with -.
Case and accents make no difference.
Of mail the subject, people, text and names of attachments are searched, of Hacker News titles,
texts, addresses and authors, of Looker names and descriptions. Before it searches, it brings its
index up to date with the mirror: the first time that takes a while. A sync or a service may run
meanwhile.";

#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    /// Words to find, all of them
    #[arg(value_name = "QUERY", required = true)]
    pub(crate) query: Vec<String>,
    /// Only in this source; may be given several times
    #[arg(long = "source", value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Show at most N
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Search what is indexed already, without looking for what is new
    #[arg(long)]
    pub(crate) as_is: bool,
}
