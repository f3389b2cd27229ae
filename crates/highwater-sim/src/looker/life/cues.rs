//! Changes that come with certain requests, so that a scenario happens at the very moment it is about.

use std::time::Duration;

use crate::looker::{
    Inside, LookerSim,
    instance::Sight,
    lists,
    plan::{Cue, Deed},
    route::Call,
};

/// Those that are still to come.
#[derive(Debug)]
pub(in crate::looker) struct Cues {
    waiting: Vec<Cue>,
}

impl Cues {
    pub(in crate::looker) fn new(plan: &[Cue]) -> Self {
        Cues { waiting: plan.to_vec() }
    }

    fn take(&mut self, call: &Call) -> Vec<Cue> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let offset = lists::window(call).1 as u64;
        let meant = |cue: &Cue| cue.path == call.operation.path && cue.offset.is_none_or(|wanted| wanted == offset);
        let due = self.waiting.extract_if(.., |cue| {
            let due = meant(cue) && cue.after == 0;
            cue.after -= u32::from(meant(cue) && !due);
            due
        });
        due.collect()
    }
}

impl LookerSim {
    pub(in crate::looker) fn on_cue(&self, inside: &mut Inside, call: &Call, now: Duration) {
        for cue in inside.cues.take(call) {
            self.do_deed(inside, &cue, now);
        }
    }

    fn do_deed(&self, inside: &mut Inside, cue: &Cue, now: Duration) {
        let (wall, id) = (self.wall(now), cue.id.as_deref().unwrap_or_default());
        let Some(kind) = cue.kind else { return inside.tokens.revoke_all() };
        let instance = &mut inside.instance;
        match cue.deed {
            Deed::Edit => instance.edit(kind, id, None, wall),
            Deed::Insert => drop(instance.insert(kind, wall)),
            Deed::Delete => instance.trash(kind, id, wall),
            Deed::Restore => instance.restore(kind, id),
            Deed::Purge => instance.purge(kind, id),
            Deed::Hide | Deed::Show => {
                let sight = if cue.deed == Deed::Hide { Sight::Hidden } else { Sight::Open };
                if let Some(record) = instance.find_mut(kind, id) {
                    record.sight = sight;
                }
            }
            Deed::Revoke => inside.tokens.revoke_all(),
        }
    }
}
