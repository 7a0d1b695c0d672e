//! Tests of the names of makers and models.

use super::*;

/// Proves that the file obeys the rules of data files: normal forms, known keys, sorted lists, compact forms.
#[test]
fn the_file_is_sound() {
    assert_eq!(ALIASES.check(), Ok(()));
    assert!(ALIASES.entries.len() > 50 && ALIASES.entries.windows(2).all(|pair| pair[0].name < pair[1].name));
    for maker in &ALIASES.entries {
        for name in &maker.names {
            let is_normal = normal_form(name) == *name || *name == maker.name;
            assert!(is_normal, "{name} is {} in normal form", normal_form(name));
        }
        assert!(maker.also.iter().all(|key| is_known(key) && *key != maker.name), "{}", maker.name);
        assert!(maker.sold_as.iter().all(|name| normal_form(name) == *name), "{}", maker.name);
        for list in [&maker.also, &maker.sold_as, &maker.words, &maker.letters, &maker.series].into_iter().chain(maker.families.values()) {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{}: {list:?}", maker.name);
        }
        let of_families = maker.families.keys().chain(maker.families.values().flatten());
        for form in maker.series.iter().chain(maker.models.keys()).chain(maker.models.values()).chain(&maker.letters).chain(of_families) {
            assert_eq!(&compact_form(form), form, "{}", maker.name);
        }
        // The keys under which directives are found hold two signs.
        assert!(maker.families.values().flatten().all(|beginning| beginning.len() >= 2), "{}", maker.name);
    }
}

/// Proves that the spellings of a make have one key, and that a holder has the keys of what it holds.
#[test]
fn makes() {
    for (make, keys) in [
        ("Piper", &["PIPER"][..]),
        ("Piper Aircraft, Inc.", &["PIPER"]),
        ("The New Piper Aircraft, Inc.", &["PIPER"]),
        ("PIPER AIRCRAFT CORPORATION", &["PIPER"]),
        ("Cessna Aircraft Company", &["CESSNA"]),
        ("Textron Aviation Inc.", &["BEECH", "CESSNA", "HAWKER", "TEXTRON AVIATION"]),
        ("Airbus SAS", &["AIRBUS"]),
        ("Airbus Helicopters Deutschland GmbH", &["AIRBUS HELICOPTERS"]),
        ("The Boeing Company", &["BOEING", "MCDONNELL DOUGLAS"]),
        ("Stemme AG", &["STEMME"]),
        ("American General", &["GRUMMAN"]),
        ("P&W", &["PRATT & WHITNEY"]),
        ("XYZ Co.", &["XYZ"]),
        ("", &[]),
        ("--", &[]),
    ] {
        assert_eq!(resolve_makes(make), keys, "{make}");
    }
    assert_eq!(nearest_makes("Pipper")[0], "PIPER");
    assert!(nearest_makes("Qqqqqqqqqq").is_empty());
}

/// Proves that the models nearest to a misspelt one come first, under the names of the texts where these have them, and that a model is not near to itself.
#[test]
fn nearest_models_of_a_make() {
    let piper = ["PIPER".to_owned()];
    assert_eq!(nearest_models(&piper, "PA2814O", [("PA28140", "PA-28-140"), ("PA28142", "PA-28-142")])[..2], ["PA-28-140", "PA-28-142"]);
    assert_eq!(nearest_models(&piper, "PA82140", [])[0], "PA28140");
    assert!(!nearest_models(&piper, "PA28140", [("PA28140", "PA-28-140")]).iter().any(|name| name.ends_with("140")));
    assert!(nearest_models(&["QQQQ".to_owned()], "PA28140", []).is_empty());
}

/// Proves that the name that owners use has a key in common with the holder that headers of real documents name.
#[test]
fn common_names() {
    for (owner, holder) in [
        ("Rotax", "BRP-Rotax GmbH & Co KG"),
        ("Schleicher", "Alexander Schleicher GmbH & Co. Segelflugzeugbau"),
        ("MT-Propeller", "MT-Propeller Entwicklung GmbH"),
        ("Guimbal", "H\u{e9}licopt\u{e8}res Guimbal"),
        ("PZL Mielec", "Polskie Zak\u{142}ady Lotnicze Sp. z o.o."),
        ("PZL", "PZL \u{15a}widnik S.A."),
        ("LET", "Aircraft Industries, a.s."),
        ("Hiller", "Siam Hiller Holdings, Inc."),
        ("Hughes", "MD Helicopters, LLC"),
        ("BAe", "BAE Systems (Operations) Limited"),
        ("Jetstream", "British Aerospace Regional Aircraft"),
        ("Raytheon", "Textron Aviation Inc."),
        ("Fairchild", "M7 Aerospace LLC"),
        ("Douglas", "The Boeing Company"),
        ("Allison", "Rolls-Royce Corporation"),
        ("Teledyne Continental", "Continental Aerospace Technologies, Inc."),
        ("CASA", "Airbus Defense and Space S.A."),
        ("Airbus", "Airbus Defense and Space S.A."),
        ("Quest", "Daher Aircraft Design, LLC"),
        ("Schweizer", "Allied Ag Cat Productions, Inc."),
        ("Piaggio", "Baykar Piaggio Aerospace S.p.A."),
        ("Gippsland", "GA8 Airvan (Pty) Ltd"),
        ("Glaser-Dirks", "DG Flugzeugbau GmbH"),
        ("Rockwell", "Twin Commander Aircraft LLC"),
        ("DEHAVILLAND", "De Havilland Aircraft of Canada Limited"),
        ("AEROSPATIALE/ALENIA", "ATR-GIE Avions de Transport R\u{e9}gional"),
        ("CONT MOTOR", "Continental Aerospace Technologies, Inc."),
        ("ROLLS-ROYC", "Rolls-Royce Deutschland Ltd & Co KG"),
        ("EADS CASA", "Airbus Defense and Space S.A."),
        ("WSK-Mielec", "PZL Mielec"),
        ("SZD", "Allstar PZL Glider Sp. z o.o."),
    ] {
        let (one, other) = (resolve_makes(owner), resolve_makes(holder));
        assert!(one.iter().any(|key| other.contains(key)), "{owner} {one:?}, {holder} {other:?}");
    }
    for (one, other) in [("Hughes", "Bell"), ("Rotax", "Bombardier"), ("CASA", "Airbus Helicopters"), ("PZL", "Piper")] {
        let (one, other) = (resolve_makes(one), resolve_makes(other));
        assert!(one.iter().all(|key| !other.contains(key)), "{one:?} {other:?}");
    }
}

/// Proves that a model belongs to the makers that make or made it, whatever part of their names its owner gives, and other models of the name do not.
#[test]
fn makers_of_models() {
    for (make, model, key, is_its) in [
        ("Airbus", "AS350B3", "AIRBUS HELICOPTERS", true),
        ("Airbus", "H125", "AIRBUS HELICOPTERS", true),
        ("Airbus", "A320-214", "AIRBUS HELICOPTERS", false),
        ("Hughes", "269C", "SCHWEIZER", true),
        ("Hughes", "369D", "SCHWEIZER", false),
        ("Schweizer", "269C", "MD HELICOPTERS", true),
        ("McDonnell Douglas", "369E", "MD HELICOPTERS", true),
        ("Cessna", "LC41-550FG", "COLUMBIA", true),
        ("Cessna", "172S", "COLUMBIA", false),
        ("GE", "CFM56-7B26", "CFM INTERNATIONAL", true),
        ("Pratt & Whitney", "V2527-A5", "IAE", true),
        ("Pratt & Whitney", "PT6A-114A", "PRATT & WHITNEY CANADA", true),
        ("Lycoming", "T53-L-13", "HONEYWELL", true),
        ("Lycoming", "O-320-E2A", "HONEYWELL", false),
        ("Rockwell", "S-2R", "THRUSH", true),
        ("Piper", "PA-60-601P", "AEROSTAR", true),
        ("Mooney", "M10", "UNIVAIR", true),
        ("Grumman", "G-164A", "SCHWEIZER", true),
        ("McDonnell Douglas", "MD600N", "MD HELICOPTERS", true),
        ("McDonnell Douglas", "MD-11", "MD HELICOPTERS", false),
        ("Airbus", "H145D3", "AIRBUS HELICOPTERS", true),
        ("Mitsubishi", "CL-600-2B19", "MHI RJ", true),
        ("Mitsubishi", "MU-2B-60", "MHI RJ", false),
        ("Aerospatiale", "TB-20", "DAHER", true),
        ("PZL", "SZD-50-3", "PZL BIELSKO", true),
        ("Pratt & Whitney", "PW1100G", "IAE", true),
        ("P&W", "PW1127G-JM", "IAE", true),
        ("PW", "V2500", "IAE", true),
        ("P&W", "PT6A-114A", "PRATT & WHITNEY CANADA", true),
        ("GE", "LEAP", "CFM INTERNATIONAL", true),
        ("Pratt & Whitney", "PW4056", "IAE", false),
    ] {
        let keys = makes_of_model(make, &compact_form(model));
        assert_eq!(keys.iter().any(|own| own == key), is_its, "{make} {model}: {keys:?}");
    }
}

/// Proves that all spellings of a model have one compact form, and that marketing names lead to it.
#[test]
fn models() {
    for spelling in ["PA-28-140", "PA28-140", "PA28140", "pa 28.140", "PA\u{2011}28/140"] {
        assert_eq!(compact_form(spelling), "PA28140");
    }
    let piper = resolve_makes("Piper");
    assert!(other_forms(&piper, &compact_form("Cherokee 140")).contains("PA28140"));
    assert!(other_forms(&piper, &compact_form("Piper PA-28-140")).contains("PA28140"));
    assert!(other_forms(&resolve_makes("Beech"), &compact_form("Bonanza A36")).contains("A36"));
    assert!(other_forms(&resolve_makes("Boeing"), &compact_form("737 MAX 8")).contains("7378"));
    assert_eq!(compact_form("EC135P2+"), "EC135P2+");
    for (make, model, series) in [
        ("Bell", "JetRanger III", "206"),
        ("Airbus Helicopters", "H145D3", "MBBBK117"),
        ("Piper", "Seneca II", "PA34"),
        ("Cessna", "Citation Latitude", "680"),
        ("Rolls-Royce", "BR710C4-11", "BR700"),
    ] {
        let found = marketed_series(&resolve_makes(make), &compact_form(model));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [series], "{make} {model}");
    }
    assert!(marketed_series(&piper, "CUBCRAFTERS").is_empty(), "a short name begins no longer one");
    for (make, model, other) in [
        ("MD Helicopters", "902 Explorer", Some("MD900")),
        ("MD Helicopters", "MD 902 Explorer", Some("MD900")),
        ("Piper", "PA-28-140 Cherokee", Some("PA28140")),
        ("Cessna", "172 Skyhawk", Some("172")),
        ("Cessna", "C172S", Some("172S")),
        ("Cessna", "CE-525B", Some("525B")),
        ("Boeing", "B737-800", Some("737800")),
        ("Dassault", "F2000EX", Some("2000EX")),
        ("Piper", "Piper Cherokee 140", Some("PA28140")),
        ("Beech", "Beech Bonanza A36", Some("A36")),
        ("Dassault", "Dassault Falcon 900EX", Some("FALCON900EX")),
        ("MD Helicopters", "MD Helicopters MD 902", Some("MD900")),
        ("Textron Aviation", "C90", None),
        ("Textron Aviation", "C23", None),
    ] {
        let forms = other_forms(&resolve_makes(make), &compact_form(model));
        assert!(other.map_or(forms.is_empty(), |form| forms.contains(form)), "{make} {model}: {forms:?}");
    }
}

/// Proves what the names of families mean, and that a name with a longer one, or with a designation, is not that of a family.
#[test]
fn families() {
    for (make, model, expected) in [
        ("International Aero Engines", "PW1100G-JM", &["PW11"][..]),
        ("International Aero Engines", "PW1127G-JM", &[]),
        ("IAE", "V2500-A5", &["V25"]),
        ("Rolls-Royce", "Trent 700", &["RB211TRENT7", "TRENT7"]),
        ("Piper", "Cherokee", &["PA28", "PA32"]),
        ("Piper", "Cherokee Six", &[]),
        ("Piper", "Cherokee 140", &[]),
        ("MD Helicopters", "MD 500", &["369", "500N"]),
        ("Cessna", "172S", &[]),
    ] {
        let found = family_of(&resolve_makes(make), &compact_form(model));
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{make} {model}");
    }
}

/// Proves that the name of a maker is a part of the designation where its series begin with the name, whether it is given or not, and nowhere else.
#[test]
fn designations_with_the_name_of_the_maker() {
    for (make, model, designation) in [
        ("ATR", "ATR 72-212A", "ATR72212A"),
        ("ATR", "72-212A", "ATR72212A"),
        ("ATR-GIE Avions de Transport R\u{e9}gional", "ATR42-500", "ATR42500"),
        ("CFM International", "CFM56-7B26", "CFM567B26"),
        ("CFM", "56-7B26", "CFM567B26"),
        ("GE", "GE90-115B", "GE90115B"),
        ("GE", "GEnx-1B67", "GENX1B67"),
        ("General Electric", "CF34-8C", "CF348C"),
        ("MD Helicopters", "MD900", "MD900"),
        ("Airbus Helicopters", "MBB-BK 117 C-2", "MBBBK117C2"),
        ("Dassault", "Falcon 900EX", "FALCON900EX"),
        ("Piper", "Piper PA-28-140", "PA28140"),
        ("Piper", "Cherokee 140", "PA28140"),
        ("Boeing", "737 MAX 8", "7378"),
        ("Beech", "Bonanza A36", "A36"),
        ("Cessna", "172S", "172S"),
        ("Unknown", "X-1", "X1"),
    ] {
        let (makes, form) = (resolve_makes(make), compact_form(model));
        let mut forms = other_forms(&makes, &form);
        forms.extend(forms_with_name(&makes, &form));
        assert_eq!(designation_of(&makes, &form, &forms), designation, "{make} {model}: {forms:?}");
    }
}

/// Proves which ends of a form can be taken for the whole.
#[test]
fn ends_of_forms() {
    for (form, expected) in [
        ("A300B4600", &["300B4600", "B4600", "4600"][..]),
        ("ERJ190100STD", &["190100STD"]),
        ("MBBBK117C2", &["117C2"]),
        ("172S", &[]),
        ("GVSP", &[]),
        ("", &[]),
    ] {
        assert_eq!(tails(form).collect::<Vec<_>>(), expected, "{form}");
    }
}

/// Proves the series of models, from the compact form and from a text.
#[test]
fn series() {
    for (make, model, expected) in [
        ("Piper", "PA28140", "PA28"),
        ("Airbus", "A319111", "A319"),
        ("Boeing", "7378H4", "737"),
        ("Bombardier", "CL6002B19", "CL600"),
        ("Cessna", "172S", "172"),
        ("Unknown", "XY12200", "XY12200"),
        ("Gulfstream", "GVSP", "GV"),
    ] {
        assert_eq!(series_of(&resolve_makes(make), model), expected, "{model}");
    }
    for (name, expected) in [
        ("PA-28-140", "PA28"),
        ("A300 B4-600", "A300"),
        ("XY-12-200", "XY12"),
        ("FALCON 900EX", "FALCON900"),
        ("MBB-BK 117 C-2", "MBBBK117"),
        ("206A-1", "206"),
        ("G-IV", "GIV"),
        ("7", "7"),
    ] {
        assert_eq!(written_series(name), expected, "{name}");
    }
}

/// Proves that a designation is one of several makers only if no longer one of them is of one maker.
#[test]
fn makers_of_a_designation() {
    for (form, is_of_several) in
        [("IO360A1B", true), ("IO360", true), ("AEIO360A1A", false), ("O320E2A", false), ("TSIO360EB", false), ("XYZ9", false), ("", false)]
    {
        assert_eq!(has_several_makers(form), is_of_several, "{form}");
    }
}
