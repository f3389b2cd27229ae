//! What tidings of a key mean, given what is known of it.

use highwater_core::{Exception, ExceptionState, Otherwise, Settlement, Tiding, Timestamp, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// Its row changes.
    Edit,
    /// It is to be fetched.
    Want,
    /// It is being tried: an answer that was asked for before may not know of this.
    Again,
    Exclude {
        reason: &'static str,
    },
}

/// Reason of a key that is to be fetched because the remote's record names it.
pub(crate) const TOLD: &str = "told";

/// A key that is tried already, or was given up, stays where it is.
pub(crate) fn then(tiding: &Tiding, is_stored: bool, excepted: Option<ExceptionState>) -> Then {
    if is_stored && tiding.otherwise != Otherwise::Refetch {
        return if tiding.edits.is_empty() { Then::Nothing } else { Then::Edit };
    }
    match (tiding.otherwise, excepted) {
        (Otherwise::Ignore, _) | (_, Some(ExceptionState::DeadLetter)) | (Otherwise::Reconsider, None) => Then::Nothing,
        (Otherwise::Fetch | Otherwise::Refetch | Otherwise::Reconsider, Some(ExceptionState::RetryWait)) => Then::Again,
        (Otherwise::Fetch | Otherwise::Refetch, None)
        | (
            Otherwise::Fetch | Otherwise::Refetch | Otherwise::Reconsider,
            Some(ExceptionState::Missing | ExceptionState::Excluded),
        ) => Then::Want,
        (Otherwise::Exclude { .. }, Some(ExceptionState::Excluded)) => Then::Nothing,
        (Otherwise::Exclude { reason }, None | Some(ExceptionState::RetryWait | ExceptionState::Missing)) => {
            Then::Exclude { reason }
        }
    }
}

/// Whether the key was told of after the answer was asked for on which the verdict rests: it stays open.
pub(crate) fn is_outrun(known: Option<&Exception>, settlement: &Settlement, asked_at: Timestamp) -> bool {
    let ends = matches!(settlement.verdict, Verdict::Stored | Verdict::Missing | Verdict::Excluded);
    let is_told = |known: &Exception| {
        known.state == ExceptionState::RetryWait && known.reason == TOLD && known.last_tried_at > asked_at
    };
    ends && known.is_some_and(is_told)
}

#[cfg(test)]
mod tests {
    use highwater_core::{Edit, Key, Value};

    use super::*;

    #[test]
    fn news_of_what_is_not_stored_are_fetched_unless_that_is_under_way() {
        let tiding = |otherwise| {
            let edits = vec![Edit::Set { column: "c", value: Value::Null }];
            Tiding { key: Key::from("a"), edits, otherwise }
        };
        let (fetch, exclude) = (tiding(Otherwise::Fetch), tiding(Otherwise::Exclude { reason: "spam" }));
        assert_eq!(then(&fetch, true, None), Then::Edit);
        assert_eq!(then(&Tiding { edits: vec![], ..fetch.clone() }, true, None), Then::Nothing);
        assert_eq!(then(&fetch, false, None), Then::Want);
        assert_eq!(then(&fetch, false, Some(ExceptionState::Excluded)), Then::Want);
        assert_eq!(then(&fetch, false, Some(ExceptionState::Missing)), Then::Want);
        assert_eq!(then(&fetch, false, Some(ExceptionState::RetryWait)), Then::Again);
        assert_eq!(then(&fetch, false, Some(ExceptionState::DeadLetter)), Then::Nothing);
        assert_eq!(then(&exclude, false, None), Then::Exclude { reason: "spam" });
        assert_eq!(then(&exclude, false, Some(ExceptionState::RetryWait)), Then::Exclude { reason: "spam" });
        assert_eq!(then(&exclude, false, Some(ExceptionState::Excluded)), Then::Nothing);
        assert_eq!(then(&tiding(Otherwise::Ignore), false, None), Then::Nothing);
        assert_eq!(then(&tiding(Otherwise::Refetch), true, None), Then::Want);
        let reconsider = tiding(Otherwise::Reconsider);
        assert_eq!(then(&reconsider, true, None), Then::Edit);
        assert_eq!(then(&reconsider, false, None), Then::Nothing);
        assert_eq!(then(&reconsider, false, Some(ExceptionState::Excluded)), Then::Want);
        assert_eq!(then(&reconsider, false, Some(ExceptionState::RetryWait)), Then::Again);
    }
}
