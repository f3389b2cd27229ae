//! Shows a page to the person at the keyboard.

use std::{env, process::Stdio};

use tokio::process::Command;

use crate::out;

/// Opens the page, or says where it is. Never ends: what the person does there is told elsewhere.
pub(super) async fn show(url: &str, opens: bool, quiet: bool) -> ! {
    let is_open = match opener(url).filter(|_| opens) {
        Some(opener) => {
            if !quiet {
                out::complain("waiting for consent in the browser");
            }
            succeeds(opener).await
        }
        None => false,
    };
    if !is_open {
        out::complain(&format!("open this address in a browser on this machine, and consent:\n\n  {url}\n"));
    }
    std::future::pending().await
}

/// A program that stays, as a browser may, has not failed.
async fn succeeds(mut opener: Command) -> bool {
    // Standard output is for data, and what a browser has to say is of no use here.
    opener.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match opener.spawn() {
        Ok(mut child) => child.wait().await.is_ok_and(|status| status.success()),
        Err(_) => false,
    }
}

fn opener(url: &str) -> Option<Command> {
    if let Some(browser) = env::var("BROWSER").ok().filter(|browser| !browser.is_empty()) {
        return Some(named(&browser, url));
    }
    let has_display = || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if has_display() => "xdg-open",
        false => return None,
    };
    let mut command = Command::new(program);
    command.arg(url);
    Some(command)
}

/// By custom a list with colons between, each a program with its arguments and `%s` for the address.
fn named(browser: &str, url: &str) -> Command {
    let first = browser.split(':').next().unwrap_or(browser);
    let mut words = first.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(first));
    command.args(words.map(|word| word.replace("%s", url)));
    if !first.contains("%s") {
        command.arg(url);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_called_as_it_is_named() {
        let shown = |browser| {
            let command = named(browser, "http://a/?b=c");
            let words = std::iter::once(command.as_std().get_program()).chain(command.as_std().get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown("firefox"), ["firefox", "http://a/?b=c"]);
        assert_eq!(shown("w3m -o x:lynx"), ["w3m", "-o", "x", "http://a/?b=c"]);
        assert_eq!(shown("open --url=%s --new"), ["open", "--url=http://a/?b=c", "--new"]);
    }
}
