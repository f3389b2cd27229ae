//! The two-minute tour.

use std::fs;

use crate::support::Home;

#[test]
fn the_demo_ends_well_and_leaves_nothing_behind() {
    let home = Home::bare();
    let scratch = home.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let mut command = home.command(&["demo", "--items", "1000"]);
    command.env("TMPDIR", &scratch);
    let done = home.launch(command).wait().exits(0);
    for part in ["is killed (SIGKILL)", "verify: every id", "Done."] {
        assert!(done.out.contains(part), "{part:?} is not in {}", done.out);
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "the demo left something behind");
    assert!(!home.path("highwater.db").exists());
}
