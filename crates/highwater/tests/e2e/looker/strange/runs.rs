//! One run after the other, and changes in the midst of one.

use serde_json::json;

use super::{
    BRIEF, Strange, ids,
    world::{World, named},
};

#[test]
fn what_is_trashed_after_it_was_read_is_marked_in_the_same_run() {
    let desk = Strange::new(World::default().with_dashboards(12), "types = ['dashboards']\n");
    desk.stage.change_at("dashboards", 2, |world| world.trash("dashboards", "3"));
    desk.sync().exits(0);
    assert_eq!(desk.deleted("dashboards"), ids([3]));
    desk.verify().exits(0);
}

#[test]
fn what_is_restored_after_it_was_read_is_live_in_the_same_run() {
    let mut world = World::default().with_dashboards(12);
    world.trash("dashboards", "3");
    let desk = Strange::new(world, "types = ['dashboards']\n");
    desk.stage.change_at("dashboards", 2, |world| {
        world.restore("dashboards", "3");
        world.remove("dashboards", "8");
    });
    desk.sync().exits(0);
    assert_eq!(desk.deleted("dashboards"), ids([8]));
    desk.verify().exits(0);
}

#[test]
fn verify_finds_what_is_marked_as_deleted_and_is_not() {
    let world = World::default().with_dashboards(12).with("themes", named(3));
    let desk = Strange::new(world, "types = ['dashboards', 'themes']\n");
    desk.sync().exits(0);
    desk.stage.change(|world| world.trash("dashboards", "4"));
    desk.sync().exits(0);
    assert_eq!(desk.deleted("dashboards"), ids([4]));
    desk.stage.change(|world| world.restore("dashboards", "4"));
    desk.verify().exits(3);
    desk.sync().exits(0);
    let theme = desk.stage.change(|world| world.remove("themes", "2"));
    desk.sync().exits(0);
    assert_eq!(desk.deleted("themes"), ids([2]));
    desk.verify().exits(0);
    desk.stage.change(|world| world.put("themes", theme));
    desk.verify().exits(3);
}

#[test]
fn objects_that_take_a_call_each_are_read_over_several_runs() {
    let explores: Vec<_> = (0..120).map(|number| json!({"name": format!("x{number}")})).collect();
    let world = World::default().with("lookml_models", vec![json!({"name": "m", "explores": explores})]);
    let desk = Strange::new(world, "types = ['explores']\nmax_calls = 60\n");
    let mut stored = 0;
    for _ in 0..8 {
        let before = desk.calls();
        let done = desk.sync();
        let spent = desk.calls() - before;
        assert!(spent <= 60, "{spent} calls");
        let now = desk.live("explores").len();
        assert!(now > stored || now == 120, "{stored} were stored, and now {now} are");
        stored = now;
        if done.status.success() {
            assert_eq!(stored, 120);
            return;
        }
        done.exits(3);
    }
    panic!("no end with {stored} stored");
}

#[test]
fn a_type_is_looked_at_anew_when_another_is_chosen_again() {
    let world = World::default().with("alerts", named(3)).with("themes", named(3));
    let desk = Strange::new(world, "types = ['alerts', 'themes']\n");
    desk.sync().exits(0);
    desk.configure(&format!("types = ['themes']\n{BRIEF}"));
    desk.sync().exits(0);
    desk.configure(&format!("types = ['alerts', 'themes']\n{BRIEF}"));
    desk.stage.change(|world| {
        world.object("themes", "2")["name"] = "another".into();
        world.put("themes", json!({"id": "9", "name": "new"}));
    });
    desk.sync().exits(0);
    assert_eq!(desk.body("themes", "2")["name"], "another");
    assert_eq!(desk.live("themes"), ids([1, 2, 3, 9]));
}

#[test]
fn most_of_a_type_may_be_deleted_while_one_of_it_answers() {
    let world = World::default().with("scheduled_plans", named(3));
    let desk = Strange::new(world, "types = ['scheduled_plans']\n");
    desk.sync().exits(0);
    desk.stage.change(|world| {
        world.remove("scheduled_plans", "1");
        world.remove("scheduled_plans", "2");
    });
    desk.sync().exits(0);
    assert_eq!(desk.deleted("scheduled_plans"), ids([1, 2]));
    assert_eq!(desk.live("scheduled_plans"), ids([3]));
}

#[test]
fn a_trashed_look_gets_no_version_by_being_read_another_way() {
    let mut world = World::default().with_looks(5);
    world.trash("looks", "1");
    let desk = Strange::new(world, "types = ['looks']\n");
    desk.sync().exits(0);
    desk.stage.change(|world| world.trash("looks", "2"));
    desk.sync().exits(0);
    assert_eq!(desk.deleted("looks"), ids([1, 2]));
    let versions = "SELECT count(*) FROM looker_content_versions WHERE content_type = 'looks' AND content_id = '1'";
    assert_eq!(desk.database().one::<i64>(versions), 0);
}
