//! What an account lets us do, and whether that is enough for a mirror.

pub const READONLY: &str = "https://www.googleapis.com/auth/gmail.readonly";
const MODIFY: &str = "https://www.googleapis.com/auth/gmail.modify";
const ALL: &str = "https://mail.google.com/";
const METADATA: &str = "https://www.googleapis.com/auth/gmail.metadata";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    #[error("the permission to read mail (gmail.readonly) was not given; leave its box ticked on the consent page")]
    Missing,
    #[error(
        "the token also carries gmail.metadata, with which Google refuses searches and bodies; remove the access of the \
         app at myaccount.google.com/connections and give it anew"
    )]
    Metadata,
}

/// People may untick what they are asked for, and tokens may come from elsewhere.
pub fn check_scopes<S: AsRef<str>>(granted: &[S]) -> Result<(), ScopeError> {
    let has = |scope: &str| granted.iter().any(|one| one.as_ref() == scope);
    if ![READONLY, MODIFY, ALL].into_iter().any(has) {
        Err(ScopeError::Missing)
    } else if has(METADATA) {
        Err(ScopeError::Metadata)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_is_enough_and_more_will_do() {
        for enough in [READONLY, MODIFY, ALL] {
            assert_eq!(check_scopes(&["openid", enough]), Ok(()));
        }
        assert_eq!(check_scopes::<&str>(&[]), Err(ScopeError::Missing));
        assert_eq!(check_scopes(&[METADATA]), Err(ScopeError::Missing));
        assert_eq!(check_scopes(&[READONLY, METADATA]), Err(ScopeError::Metadata));
    }
}
