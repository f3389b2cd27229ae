//! Signing in: who asks, from where that is known, and who is refused.

use super::desk::{Desk, FAST};
use crate::support::{Home, Sim};

const FEW: &str = "types = ['folders', 'roles']\n";

fn bare(sim: &Sim, keys: &str) -> Home {
    let home = Home::bare();
    home.write("highwater.toml", &format!("[sources.bi]\nkind = \"looker\"\n{FEW}{keys}\n{FAST}"));
    home.write(
        "looker.ini",
        &format!("[dev]\nbase_url = http://127.0.0.1:1\n[prod]\nbase_url = \"{}/\"\nclient_id = sim-client\nclient_secret = sim-secret\n", sim.url()),
    );
    home
}

#[test]
fn a_wrong_secret_is_told_with_exit_code_4() {
    for status in [400, 401, 403, 404] {
        let desk = Desk::new(Sim::looker_planned(20, &format!("[login]\nrefused_status = {status}\n")), FAST);
        desk.sim.act("credentials?client_secret=another");
        desk.sync().exits(4).complains(&["refuses the client id or the secret"]);
        assert_eq!(desk.calls(), 0);
        let done = desk.home.run(&["verify", "bi", "--quiet"]);
        assert!(matches!(done.status.code(), Some(3 | 4)), "{:?}", done.status);
    }
}

#[test]
fn the_key_comes_from_the_environment_or_from_the_file_of_the_sdk() {
    let sim = Sim::looker(20, "none");
    bare(&sim, "ini = \"looker.ini\"\nsection = \"prod\"\n").run(&["sync", "bi", "--quiet"]).exits(0);
    let home = bare(&sim, "");
    home.run(&["sync", "bi", "--quiet"]).exits(2).complains(&["base_url is missing"]);
    let mut command = home.command(&["sync", "bi", "--quiet"]);
    command.env("LOOKERSDK_BASE_URL", sim.url()).env("LOOKERSDK_CLIENT_ID", "sim-client");
    command.env("LOOKERSDK_CLIENT_SECRET", "sim-secret");
    home.launch(command).wait().exits(0);
    let missing =
        format!("base_url = \"{}\"\nclient_id = \"a\"\nclient_secret_env = \"NOT_SET_ANYWHERE\"\n", sim.url());
    bare(&sim, &missing).run(&["sync", "bi", "--quiet"]).exits(4).complains(&["NOT_SET_ANYWHERE is not set"]);
    bare(&sim, "ini = \"looker.ini\"\nsection = \"qa\"\n").run(&["sync", "bi"]).exits(2).complains(&["dev, prod"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let desk = Desk::new(Sim::looker(20, "none"), FAST);
    desk.home.run(&["sync", "bi", "--last", "5"]).exits(2).complains(&["say nothing of bi"]);
    desk.home.run(&["serve", "bi"]).exits(2).complains(&["highwater sync bi"]);
    desk.configure("sqlite:highwater.db", "types = ['dashbords']\n");
    desk.sync().exits(2).complains(&["did you mean \"dashboards\""]);
    desk.configure("sqlite:highwater.db", "[sources.bi.limits]\nin_flight = 51\n");
    desk.sync().exits(2).complains(&["at most 50"]);
}

#[test]
fn no_secret_is_in_what_is_written() {
    let desk = Desk::new(Sim::looker(20, "none"), FAST);
    let done = desk.home.run(&["sync", "bi", "-v", "-v"]).exits(0);
    assert!(!done.err.contains("sim-secret") && !done.out.contains("sim-secret"));
}
