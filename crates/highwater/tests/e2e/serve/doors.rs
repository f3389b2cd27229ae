//! Who may look at a service, and what it refuses to start with.

use super::{home, limits, plan};
use crate::support::{Home, Service, Sim};

#[test]
fn only_who_means_this_machine_is_answered() {
    let sim = Sim::planned(50, &plan(""));
    let home = home(&sim, &limits("rate = \"unlimited\"", ""));
    let service = Service::start(&home);
    assert_eq!(service.ask("/healthz", &service.host()).0, 200);
    for page in ["/metrics", "/readyz", "/api/status"] {
        assert!(matches!(service.ask(page, "Host: evil.example\r\n").0, 403 | 421), "{page}");
    }
    assert_eq!(service.ask("/nothing", &service.host()).0, 404);
    service.stop().exits(143);
}

#[test]
fn an_address_others_can_reach_needs_a_token() {
    let sim = Sim::planned(50, &plan(""));
    let home = home(&sim, &limits("rate = \"unlimited\"", "[serve]\nlisten = \"0.0.0.0:0\""));
    home.run(&["serve"]).exits(2).complains(&["needs a token", "hint:"]);
    let home = self::home(&sim, &limits("rate = \"unlimited\"", "[serve]\ntoken_env = \"TOKEN\""));
    home.run(&["serve"]).exits(2).complains(&["TOKEN is not set"]);
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("TOKEN", "s3cret");
    let service = Service::launch(&home, command);
    assert_eq!(service.ask("/metrics", &service.host()).0, 401);
    assert_eq!(service.ask("/metrics", &format!("{}Authorization: Bearer s3cret\r\n", service.host())).0, 200);
    assert!(!service.err().contains("s3cret"));
}

#[test]
fn nonsense_in_the_configuration_is_named() {
    let home = Home::bare();
    for (text, said) in [
        ("[sources.hn]\nkind = \"hn\"\n[sources.hn.live]\nworker = 3", "did you mean 'workers'?"),
        ("[sources.hn]\nkind = \"hn\"\n[sources.hn.live]\nrescan_every = \"6\"", "sources.hn.live.rescan_every"),
        ("[sources.hn]\nkind = \"hn\"\n[sources.hn.live]\nrescan_every = \"0s\"", "sources.hn.live.rescan_every: "),
        ("[sources.hn]\nkind = \"hn\"\n[sources.hn.live]\nrescan_window = \"0d\"", "sources.hn.live.rescan_window: "),
        (
            "[sources.hn]\nkind = \"hn\"\n[sources.hn.live]\nshort_rescan_window = \"0d\"",
            "sources.hn.live.short_rescan_window: ",
        ),
        ("[serve]\nlisten = \"nowhere\"", "serve.listen"),
        ("[alerts]\nsmtp = \"smtp://localhost\"", "alerts.from is missing"),
    ] {
        home.write("highwater.toml", text);
        home.run(&["serve"]).exits(2).complains(&[said]);
    }
}
