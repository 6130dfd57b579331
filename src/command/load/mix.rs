//! In which parts producers feed the kinds of events.

use std::str::FromStr;

/// Weights of submissions, idle nodes and finished tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mix {
    weights: [u32; 3],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Submit,
    Idle,
    Finish,
}

const KINDS: [Kind; 3] = [Kind::Submit, Kind::Idle, Kind::Finish];
const WEIGHT_MAX: u32 = 1_000_000;

impl Mix {
    /// The kind that is furthest behind its part, when so many of each were fed.
    pub(super) fn next(self, fed: [u64; 3]) -> Kind {
        let weighted = KINDS.into_iter().zip(self.weights).zip(fed);
        let has_part = weighted.filter(|((_, weight), _)| *weight > 0);
        let behind = has_part.min_by_key(|((_, weight), fed)| {
            // Fed over weight, in whole numbers that are large enough to compare.
            u128::from(*fed) * u128::from(WEIGHT_MAX) / u128::from(*weight)
        });
        behind.map_or(Kind::Submit, |((kind, _), _)| kind)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let expected = || format!("expected three parts such as 2:1:2, each at most {WEIGHT_MAX}");
        let weights: Result<Vec<u32>, _> = text.split(':').map(str::parse).collect();
        let weights: [u32; 3] = weights.map_err(|_| expected())?.try_into().map_err(|_| expected())?;
        if weights.iter().any(|weight| *weight > WEIGHT_MAX) {
            return Err(expected());
        }
        match weights {
            [0, _, _] => Err("without submissions nothing happens".into()),
            [_, 0, 0] => Err("without idle nodes or finished tasks nothing ends".into()),
            weights => Ok(Mix { weights }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_needs_three_parts_that_make_sense() {
        assert_eq!("2:1:3".parse(), Ok(Mix { weights: [2, 1, 3] }));
        for bad in ["", "1:1", "1:1:1:1", "0:1:1", "1:0:0", "a:1:1", "1:-1:1", "1:1:2000000"] {
            assert!(bad.parse::<Mix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_furthest_behind_comes_next() {
        let mix = Mix { weights: [2, 0, 1] };
        assert_eq!(mix.next([0, 0, 0]), Kind::Submit);
        assert_eq!(mix.next([64, 0, 0]), Kind::Finish);
        assert_eq!(mix.next([64, 0, 31]), Kind::Finish);
        assert_eq!(mix.next([64, 0, 33]), Kind::Submit);
    }
}
