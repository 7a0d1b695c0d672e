//! Words that are names of persons: the usual given names of the country, by which a person next to an institution is noticed, and family names that nobody
//! has as a given name, by which a firm is known that is named after several persons.
//!
//! Neither list is complete. A rule that shows a text therefore needs more than the absence of a name.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Usual given names, in capitals. Those that are usual words of institutions and places are not among them.
const GIVEN_NAMES: &str = "\
    AARON ADAM ADRIAN AGNES ALAN ALBERT ALEXANDER ALFRED ALICE ALLISON ALYSSA AMANDA AMBER AMY ANDREA ANDREW ANGELA ANITA ANN ANNA ANNE ANNETTE \
    ANNIE ANTHONY ARTHUR ASHLEY AUDREY AUSTIN BARBARA BENJAMIN BERNARD BERNICE BERTHA BETH BETTY BEVERLY BILL BILLY BOB BONNIE BRADLEY BRANDON \
    BRENDA BRIAN BRITTANY BRUCE CAROL CAROLYN CARRIE CATHERINE CATHY CHARLENE CHARLES CHERYL CHRISTINA CHRISTINE CHRISTOPHER CINDY CLARENCE \
    CLAUDIA CONNIE CRYSTAL CURTIS CYNTHIA DANIEL DANIELLE DARLENE DARRYL DAVID DAWN DEBORAH DEBRA DENISE DENNIS DIANA DIANE DOLORES DONALD DONNA \
    DORIS DOROTHY DOUGLAS DUANE EDDIE EDGAR EDITH EDWARD EDWIN EILEEN ELAINE ELEANOR ELIZABETH ELLEN EMILY EMMA ERIC ERNEST ESTHER ETHEL EUGENE \
    EVELYN FLORENCE FRANCES FRANCIS FRANK FRED FREDERICK GAIL GARY GEORGE GERALD GERTRUDE GINA GLADYS GLENN GLORIA GREGORY HAROLD HARRY HEATHER \
    HELEN HENRY HERBERT HERMAN HOLLY HOWARD IRENE JACK JACOB JACQUELINE JAMES JAMIE JANE JANET JANICE JASON JEAN JEANNE JEFFREY JENNIFER JEREMY \
    JERRY JESSICA JESSIE JILL JIM JIMMY JOAN JOANN JOANNE JOE JOEL JOHN JOHNNY JON JONATHAN JOSE JOSEPH JOSEPHINE JOSHUA JOYCE JUAN JUANITA \
    JUDITH JUDY JULIA JULIE JUSTIN KAREN KATHERINE KATHLEEN KATHRYN KATHY KATIE KEITH KENNETH KEVIN KIMBERLY KRISTEN KYLE LARRY LAURA LAUREN \
    LAWRENCE LEONARD LESLIE LILLIAN LINDA LISA LOIS LORETTA LORI LOUIS LOUISE LUCILLE MARCIA MARGARET MARGIE MARIA MARIE MARILYN MARIO MARJORIE \
    MARK MARTHA MARY MATTHEW MAUREEN MEGAN MELANIE MELISSA MICHAEL MICHELE MICHELLE MIKE MILDRED MINNIE MONICA NANCY NATALIE NATHAN NATHANIEL \
    NICHOLAS NICOLE NORMA NORMAN PAMELA PATRICIA PATRICK PAUL PAULA PAULINE PEDRO PEGGY PETER PHILIP PHILLIP PHYLLIS RACHEL RALPH RAMON RAYMOND \
    REBECCA REGINA RENEE RHONDA RICARDO RICHARD RITA ROBERT ROBERTA ROBIN RODNEY ROGER RONALD ROSEMARY ROY RUBEN RUTH RYAN SALLY SAMANTHA SAMUEL \
    SANDRA SARA SARAH SCOTT SEAN SHANNON SHARON SHEILA SHERRY SHIRLEY STANLEY STEPHANIE STEPHEN STEVE STEVEN SUE SUSAN SUZANNE SYLVIA TAMMY TARA \
    TERESA TERRY THELMA THEODORE THERESA THOMAS TIFFANY TIMOTHY TINA TODD TOM TONY TRACY TYLER VALERIE VANESSA VERA VERONICA VICTOR VICTORIA \
    VINCENT VIVIAN WALTER WANDA WENDY WILLIAM WILLIE YOLANDA YVONNE ZACHARY";
/// Usual family names that are not given names, in capitals.
const FAMILY_NAMES: &str = "\
    ADAMS ANDERSON BAKER BROWN BURNS BUTLER COHEN COX CRAWFORD DANIELS DIXON DUNN EDWARDS EVANS FERGUSON FISHER GARDNER HAWKINS HICKS HOFFMAN \
    HOLMES HUGHES HUNT JENKINS JOHNSON JONES KAPLAN KELLER KLEIN KNIGHT MATTHEWS MCCARTHY MCDONALD MEYER MILLS MOORE NICHOLS PATTERSON PAYNE \
    PERKINS PETERSON PHILLIPS POWELL RICE RICHARDSON ROBERTS ROBERTSON ROBINSON ROGERS SCHMIDT SHAW SIMMONS SMITH SNYDER STEPHENS THOMPSON \
    WAGNER WEBER WHITE WILLIAMS WOOD WOODS WRIGHT";
/// What is before a given name in the name of a place: `SAN JOSE`, `LAKE GEORGE`.
const BEFORE_PLACES: [&str; 11] = ["FORT", "FT", "LAKE", "MOUNT", "MT", "PORT", "SAINT", "SAN", "SANTA", "ST", "STE"];
/// What the name of a place ends with that can begin with a given name: `ANN ARBOR`, `CAROL STREAM`.
const ENDS_OF_PLACES: [&str; 14] = [
    "ARBOR", "BEACH", "CITY", "CREEK", "FALLS", "GROVE", "HARBOR", "HEIGHTS", "ISLAND", "JUNCTION", "SPRINGS", "STREAM", "TOWNSHIP", "TWP",
];
/// Cities with a given name that nothing else tells from persons.
const PLACES: [[&str; 2]; 6] =
    [["ALLISON", "PARK"], ["CASTLE", "SHANNON"], ["CHARLES", "TOWN"], ["JIM", "THORPE"], ["KING", "GEORGE"], ["WEST", "ELIZABETH"]];

static GIVEN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| GIVEN_NAMES.split_whitespace().collect());
static FAMILY: LazyLock<HashSet<&'static str>> = LazyLock::new(|| FAMILY_NAMES.split_whitespace().collect());

/// Whether a word in capitals is a usual given name.
pub(crate) fn is_given_name(word: &str) -> bool {
    GIVEN.contains(word)
}

/// Whether a word in capitals is a usual family name and no given name.
pub(crate) fn is_family_name(word: &str) -> bool {
    FAMILY.contains(word)
}

/// Whether what stands where a city is expected can be the name of a person: several words, and one of them a usual given name. A name that is not usual is not
/// noticed.
#[must_use]
pub fn is_like_person(city: &str) -> bool {
    let city = city.to_uppercase();
    let words: Vec<&str> = city.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_place = words.first().is_some_and(|first| BEFORE_PLACES.contains(first))
        || words.last().is_some_and(|last| ENDS_OF_PLACES.contains(last))
        || PLACES.iter().any(|place| words == *place);
    words.len() > 1 && !is_place && words.iter().any(|word| is_given_name(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that both lists are sorted, and that no word is in both.
    #[test]
    fn lists_are_sorted() {
        for list in [GIVEN_NAMES, FAMILY_NAMES] {
            let words: Vec<&str> = list.split_whitespace().collect();
            assert!(words.is_sorted_by(|one, other| one < other), "{words:?}");
            assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_uppercase())));
        }
        assert_eq!(GIVEN.intersection(&FAMILY).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    /// Proves what is like a person where a city is expected, and that cities with given names are not.
    #[test]
    fn persons_and_cities() {
        for person in ["JOHN SMITH", "Smith John", "SMITH, MARY Q", "MARY O'NEIL", "JOHN HILL", "PARK WILLIAM"] {
            assert!(is_like_person(person), "{person}");
        }
        for city in [
            "PITTSBURGH",
            "ELIZABETH",
            "FORD CITY",
            "ANN ARBOR",
            "SAN JOSE",
            "ST. JOSEPH",
            "LAKE GEORGE",
            "CAROL STREAM",
            "BOCA RATON",
            "NEW YORK",
            "ALLISON PARK",
            "Castle Shannon",
            "WEST ELIZABETH",
            "SCOTT TWP",
            "",
        ] {
            assert!(!is_like_person(city), "{city}");
        }
    }
}
