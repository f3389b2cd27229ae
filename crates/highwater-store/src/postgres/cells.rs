//! How times, words and keys lie in columns: values on their way to the server and back.

use std::str::FromStr;

use bytes::BytesMut;
use highwater_core::{Key, Timestamp};
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use super::error::Sql;

type Oops = Box<dyn std::error::Error + Sync + Send>;

/// A time in a column of TIMESTAMPTZ: microseconds since the year 2000, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Timestamp);

const YEAR_2000: i64 = 946_684_800_000;
/// What the database can hold, in milliseconds since 2000: from 4713 BC to AD 294276.
const SPAN: std::ops::RangeInclusive<i64> = -211_813_488_000_000..=9_223_371_331_199_999;

impl ToSql for Time {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Oops> {
        let millis = self.0.as_millis().saturating_sub(YEAR_2000).clamp(*SPAN.start(), *SPAN.end());
        (millis * 1000).to_sql(&Type::INT8, out)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Time {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Oops> {
        let micros = i64::from_sql(&Type::INT8, raw)?;
        Ok(Time(Timestamp::from_millis(micros.div_euclid(1000).saturating_add(YEAR_2000))))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

pub(super) fn time(row: &Row, index: usize) -> Sql<Option<Timestamp>> {
    Ok(row.try_get::<_, Option<Time>>(index)?.map(|Time(at)| at))
}

pub(super) fn time_at(row: &Row, index: usize) -> Sql<Timestamp> {
    let Time(at) = row.try_get(index)?;
    Ok(at)
}

/// A word of one of the core's enums.
pub(super) fn word<T>(row: &Row, index: usize) -> Sql<T>
where
    T: FromStr<Err = highwater_core::UnknownWord>,
{
    Ok(row.try_get::<_, &str>(index)?.parse()?)
}

pub(super) fn count(row: &Row, index: usize) -> Sql<u64> {
    Ok(row.try_get::<_, i64>(index)?.cast_unsigned())
}

/// Numbers of a run on the average, from which on it is worth the name.
const RUN_MIN: usize = 8;

/// Keys in the type of their column. One that does not fit it names nothing there.
pub(super) enum Keys {
    Numbers(Vec<i64>),
    Names(Vec<String>),
}

impl Keys {
    pub(super) fn of<'a>(kind: highwater_core::schema::ColumnType, keys: impl Iterator<Item = &'a Key>) -> Keys {
        if kind == highwater_core::schema::ColumnType::Int {
            Keys::Numbers(keys.filter_map(Key::number).collect())
        } else {
            Keys::Names(keys.map(Key::to_string).collect())
        }
    }

    /// Sorted numbers as the first and last ones of their runs, if those are few.
    pub(super) fn runs(&self) -> Option<[Vec<i64>; 2]> {
        let Keys::Numbers(numbers) = self else { return None };
        let runs = numbers.chunk_by(|a, b| b.checked_sub(*a).is_some_and(|step| (0..=1).contains(&step)));
        let (firsts, lasts): (Vec<_>, Vec<_>) = runs.map(|run| (run[0], run[run.len() - 1])).unzip();
        (firsts.len() * RUN_MIN <= numbers.len()).then_some([firsts, lasts])
    }

    pub(super) fn param(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Keys::Numbers(numbers) => (numbers, Type::INT8_ARRAY),
            Keys::Names(names) => (names, Type::TEXT_ARRAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_lie_close_are_runs() {
        let runs = |numbers: &[i64]| Keys::Numbers(numbers.to_vec()).runs();
        let close: Vec<_> = (1..=10).chain(10..=20).chain([i64::MAX]).collect();
        assert_eq!(runs(&close), Some([vec![1, i64::MAX], vec![20, i64::MAX]]));
        assert_eq!(runs(&[]), Some([vec![], vec![]]));
        assert_eq!(runs(&[1, 3, 5, 7, 9, 11, 13, 15, 17]), None);
        assert_eq!(runs(&[i64::MIN, i64::MAX]), None);
        assert_eq!(Keys::Names(vec!["1".into()]).runs(), None);
    }

    #[test]
    fn a_time_goes_there_and_back() {
        for millis in [0, -1, 946_684_800_000, 1_700_000_000_123] {
            let mut raw = BytesMut::new();
            let time = Time(Timestamp::from_millis(millis));
            time.to_sql(&Type::TIMESTAMPTZ, &mut raw).unwrap();
            assert_eq!(Time::from_sql(&Type::TIMESTAMPTZ, &raw).unwrap(), time);
        }
        let mut raw = BytesMut::new();
        Time(Timestamp::from_millis(i64::MAX)).to_sql(&Type::TIMESTAMPTZ, &mut raw).unwrap();
    }
}
