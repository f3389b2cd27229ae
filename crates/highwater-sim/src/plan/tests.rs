//! Plans as people write them, right and wrong.

use super::*;

fn refused(text: &str) -> String {
    FaultPlan::parse(text).expect_err("the plan must be refused").to_string()
}

#[test]
fn presets_and_the_sample_parse() {
    for preset in Preset::ALL {
        assert_eq!(FaultPlan::load(preset.as_str()).unwrap(), preset.plan());
    }
    assert_eq!(Preset::None.plan(), FaultPlan::default());
    FaultPlan::parse(FaultPlan::sample()).unwrap();
}

#[test]
fn the_sample_and_the_docs_name_every_fault() {
    let docs = include_str!("../plan.rs");
    for fault in Fault::ALL {
        assert!(FaultPlan::sample().contains(&format!("\n{fault} = ")), "sample lacks {fault}");
        assert!(docs.contains(&format!("`{fault}`")), "docs lack {fault}");
    }
}

#[test]
fn the_sample_has_every_key_that_the_docs_have() {
    let docs = include_str!("../plan.rs");
    let rows = docs.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once('`'));
    let keys: Vec<&str> =
        rows.map(|(key, _)| key.rsplit('.').next().unwrap()).filter(|key| *key != "<fault>").collect();
    assert!(keys.len() > 30, "{keys:?}");
    for key in keys {
        assert!(FaultPlan::sample().contains(&format!("\n{key} = ")), "sample lacks {key}");
    }
}

#[test]
fn an_unknown_key_is_named_with_the_known_ones() {
    let top = refused("latenzy = 1");
    assert!(top.contains("`latenzy`") && top.contains("`latency`") && top.contains("`heal_after`"), "{top}");
    let nested = refused("[quota]\nper_minute = 1");
    assert!(nested.contains("`per_minute`") && nested.contains("`per_second`"), "{nested}");
    let script = refused("[[script]]\nid = 1\nreply = []");
    assert!(script.contains("`reply`") && script.contains("`replies`"), "{script}");
    let rate = refused("[rates]\n501 = 0.1");
    assert!(rate.contains("`501`") && rate.contains("`500`") && rate.contains("`hang`"), "{rate}");
    let step = refused("[[script]]\nid = 1\nreplies = [\"501\"]");
    assert!(step.contains("`501`") && step.contains("`normal`"), "{step}");
}

#[test]
fn values_out_of_range_are_refused() {
    for (text, key) in [
        ("heal_after = 6", "heal_after"),
        ("body.odd = 1.5", "body.odd"),
        ("[rates]\n500 = -0.1", "rates.500"),
        ("[rates]\n500 = 0.6\n502 = 0.6", "rates"),
        ("[[script]]\nreplies = []", "script"),
        ("[[script]]\nid = 1\nshare = 0.1", "script"),
        ("[[script]]\nid = 1\nthen = \"429\"", "script.then"),
        ("[[script]]\nshare = 2", "script.share"),
        ("mutations.unpublished = 2", "mutations.unpublished"),
        ("stream.forms = []", "stream.forms"),
        ("stream.status_first = [200]", "stream.status_first"),
    ] {
        let message = refused(text);
        assert!(message.contains(&format!("`{key}`")), "{text}: {message}");
    }
}

#[test]
fn a_plan_is_read_from_a_file_and_a_wrong_name_gets_a_hint() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "[rates]\n500 = 0.5\n").unwrap();
    let plan = FaultPlan::load(file.path().to_str().unwrap()).unwrap();
    assert_eq!(plan.rates[&Fault::Internal], 0.5);
    let message = FaultPlan::load("strom").unwrap_err().to_string();
    assert!(message.contains("`strom` is no preset") && message.contains("`storm`"), "{message}");
}
