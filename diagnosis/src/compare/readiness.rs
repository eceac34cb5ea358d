//! How ready two platforms are together, from how ready each is and what the contract says of the pair.

use model::{Area, Light};

use super::{
    contract::{Contract, Verdict},
    statistics::Outcome,
};

/// The lights of both sides, and that of the pair: a pair stands as far as its weaker side. Whether a difference of the two can
/// be verified is what the contract says, and whether repeats show it.
pub fn together(sides: [&[(Area, Light)]; 2], contract: &Contract, outcome: Outcome) -> Vec<(Area, [Light; 2], Light)> {
    let of = |side: usize, area: Area| {
        let known = sides.get(side).into_iter().copied().flatten().find(|(one, _)| *one == area);
        known.map_or(Light::Unknown, |(_, light)| *light)
    };
    let pair = |area: Area| {
        let both = [of(0, area), of(1, area)];
        let together = match area {
            Area::Verify => verified(contract, outcome),
            _ => both[0].and(both[1]),
        };
        (area, both, together)
    };
    Area::ALL.map(pair).to_vec()
}

fn verified(contract: &Contract, outcome: Outcome) -> Light {
    match (contract.verdict(), outcome) {
        (Verdict::NotComparable, _) => Light::Red,
        (Verdict::Comparable, Outcome::Significant | Outcome::NotSignificant) => Light::Green,
        (Verdict::Caveats | Verdict::Comparable, _) => Light::Amber,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{
        Side,
        contract::{About, Claim, Code, Force, Reason},
    };

    fn contract(force: Option<Force>) -> Contract {
        let reason = |force| Reason {
            code: Code::Noise,
            about: About::Noise,
            side: Some(Side::A),
            force,
            claims: Claim::ALL.to_vec(),
        };
        Contract { controls: Vec::new(), reasons: force.map(reason).into_iter().collect(), work: None }
    }

    #[test]
    fn a_pair_stands_as_far_as_its_weaker_side() {
        let a = [(Area::Run, Light::Green), (Area::Graph, Light::Green), (Area::Communication, Light::Unknown)];
        let b = [(Area::Run, Light::Green), (Area::Graph, Light::Red), (Area::Communication, Light::Green)];
        let found = together([&a, &b], &contract(None), Outcome::Significant);
        let of = |area| found.iter().find(|(one, ..)| *one == area).map(|(_, _, light)| *light);
        assert_eq!(of(Area::Run), Some(Light::Green));
        assert_eq!(of(Area::Graph), Some(Light::Red));
        assert_eq!(of(Area::Communication), Some(Light::Unknown));
        assert_eq!(of(Area::Observability), Some(Light::Unknown), "nothing is green because nothing is said");
    }

    #[test]
    fn what_can_be_verified_is_what_the_contract_says() {
        let light = |force, outcome| {
            let found = together([&[], &[]], &contract(force), outcome);
            found.last().map(|(.., light)| *light)
        };
        assert_eq!(light(Some(Force::Refuses), Outcome::Significant), Some(Light::Red));
        assert_eq!(light(Some(Force::Limits), Outcome::Significant), Some(Light::Amber));
        assert_eq!(light(None, Outcome::Unknown), Some(Light::Amber));
        assert_eq!(light(None, Outcome::NotSignificant), Some(Light::Green));
    }
}
