//! Times and durations as BOS writes and reads them in texts (BOS reference 3.9).

use crate::core::time::Timestamp;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Midnight of the first of January of year 1 in UTC, the first moment that BOS can write.
pub(crate) const EARLIEST: Timestamp = Timestamp(-719_162 * DAY);

/// Writes a time as `YYYY-MM-DDTHH:MM:SS` in UTC: no fraction and no zone.
pub fn text(time: Timestamp) -> String {
    let (year, month, day) = date(time.0.div_euclid(DAY));
    let rest = time.0.rem_euclid(DAY);
    let (hour, minute, second) = (rest / HOUR, rest % HOUR / MINUTE, rest % MINUTE / SECOND);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Reads a date and a time of day, with `T`, `t` or a space between them; seconds, fraction and zone may
/// be left out, and a zone is dropped without conversion. `None` when the text is not a time.
pub fn read(text: &str) -> Option<Timestamp> {
    let (day_text, clock) = text.trim().split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(day_text.split('-'))?;
    if !(1..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=month_length(year, month)).contains(&day)
    {
        return None;
    }
    let clock = clock.split(['Z', 'z', '+', '-', ' ']).next()?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let whole = if clock.matches(':').count() == 1 { format!("{clock}:0") } else { clock.to_owned() };
    let [hour, minute, second] = numbers(whole.split(':'))?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let time_of_day = hour * HOUR + minute * MINUTE + second * SECOND + milliseconds(fraction)?;
    Some(Timestamp(days(year, month, day) * DAY + time_of_day))
}

/// Writes a duration of `milliseconds` the way Python prints one: `0:02:17`, `0:00:03.321000` or
/// `1 day, 1:58:10`. The days of a negative duration are rounded down, as in `-1 day, 23:59:59`.
pub fn duration(milliseconds: i64) -> String {
    let (count, rest) = (milliseconds.div_euclid(DAY), milliseconds.rem_euclid(DAY));
    let plural = if count.abs() == 1 { "" } else { "s" };
    let day_text = if count == 0 { String::new() } else { format!("{count} day{plural}, ") };
    let fraction = rest % SECOND;
    let fraction_text = if fraction == 0 { String::new() } else { format!(".{fraction:03}000") };
    let (hour, minute, second) = (rest / HOUR, rest % HOUR / MINUTE, rest % MINUTE / SECOND);
    format!("{day_text}{hour}:{minute:02}:{second:02}{fraction_text}")
}

/// Exactly three unsigned numbers of at most four digits.
fn numbers<'a>(parts: impl Iterator<Item = &'a str>) -> Option<[i64; 3]> {
    let digits = |part: &'a str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let read: Option<Vec<i64>> = parts.map(|part| digits(part).then(|| part.parse().ok())?).collect();
    read?.try_into().ok()
}

/// The first three digits of a fraction of a second; what comes after them is below our resolution.
fn milliseconds(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded: String = fraction.chars().chain("000".chars()).take(3).collect();
    padded.parse().ok()
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first of January of year 1 to that of `year`.
fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

/// Days from 1970-01-01 to a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let before_month: i64 = (1..month).map(|m| month_length(year, m)).sum();
    days_before_year(year) + before_month + day - 1 - days_before_year(1970)
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(since_1970: i64) -> (i64, i64, i64) {
    let since_year_1 = since_1970 + days_before_year(1970);
    // 400 years have 146,097 days, so the quotient is never more than one year off.
    let mut year = (since_year_1 * 400).div_euclid(146_097) + 1;
    while days_before_year(year) > since_year_1 {
        year -= 1;
    }
    while days_before_year(year + 1) <= since_year_1 {
        year += 1;
    }
    let mut day = since_year_1 - days_before_year(year);
    let mut month = 1;
    while day >= month_length(year, month) {
        day -= month_length(year, month);
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_without_fraction_and_zone() {
        for (milliseconds, expected) in [
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (951_782_400_000, "2000-02-29T00:00:00"),
            (1_732_119_012_999, "2024-11-20T16:10:12"),
            (4_102_444_799_000, "2099-12-31T23:59:59"),
            (EARLIEST.0, "0001-01-01T00:00:00"),
            (253_402_300_799_999, "9999-12-31T23:59:59"),
        ] {
            assert_eq!(text(Timestamp(milliseconds)), expected);
            assert_eq!(read(expected), Some(Timestamp(milliseconds.div_euclid(SECOND) * SECOND)));
        }
    }

    #[test]
    fn no_time_is_too_far_away_to_be_written() {
        assert_eq!(text(Timestamp(i64::MAX)), "292278994-08-17T07:12:55");
        assert_eq!(text(Timestamp(i64::MIN)), "-292275055-05-16T16:47:04");
    }

    #[test]
    fn every_day_of_four_centuries_reads_back() {
        for day in -80_000..80_000 {
            let noon = Timestamp(day * DAY + 12 * HOUR);
            assert_eq!(read(&text(noon)), Some(noon));
        }
    }

    #[test]
    fn common_spellings_are_read_and_zones_dropped() {
        let whole = Some(Timestamp(1_732_119_012_000));
        let fraction = Some(Timestamp(1_732_119_012_345));
        for (input, expected) in [
            ("2024-11-20T16:10:12", whole),
            ("2024-11-20 16:10:12", whole),
            ("2024-11-20T16:10:12Z", whole),
            ("2024-11-20T16:10:12+05:30", whole),
            ("2024-11-20T16:10:12-0800", whole),
            ("2024-11-20T16:10:12 UTC", whole),
            ("2024-11-20T16:10:12.345678Z", fraction),
            ("2024-11-20t16:10:12.345", fraction),
            ("2024-11-20T16:10", Some(Timestamp(1_732_119_000_000))),
            ("2024-11-20T16:10:12.3", Some(Timestamp(1_732_119_012_300))),
        ] {
            assert_eq!(read(input), expected, "{input}");
        }
        for bad in [
            "",
            "now",
            "2024-11-20",
            "2024-13-01T00:00:00",
            "2023-02-29T00:00:00",
            "2024-11-20T24:00:00",
            "2024-11-20T16:10:12.x",
            "2024-11-20T16:10:12:13",
            "20241-1-20T00:00:00",
            "2024-11-ä0T00:00:00",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_print_like_python() {
        for (milliseconds, expected) in [
            (0, "0:00:00"),
            (137_000, "0:02:17"),
            (3_321, "0:00:03.321000"),
            (DAY - 1, "23:59:59.999000"),
            (DAY + 2 * HOUR - 110_000, "1 day, 1:58:10"),
            (2 * DAY, "2 days, 0:00:00"),
            (-1_000, "-1 day, 23:59:59"),
            (-DAY - 1_000, "-2 days, 23:59:59"),
        ] {
            assert_eq!(duration(milliseconds), expected);
        }
    }
}
