//! The words of the titles that are simulated. A word occurs about as often on every day.

/// Nouns, separated by blanks.
pub(super) const NOUNS: &str = "algorithm archive assembler atlas backup balance battery benchmark bicycle board book boundary bridge browser budget bug \
    bundle cable cache calendar camera canvas career catalog chart circuit city class client clock cluster code color column \
    compiler computer concert container contract corpus course crate crystal culture cursor dashboard database deadline debugger \
    decision deployment desk diagram dictionary disk display district document driver edge editor electron encoder energy engine \
    essay estimate experiment factory feature filesystem firmware font forecast forest format framework function garden gateway \
    grammar graph hardware hash history house index industry interface interview journal kernel keyboard laboratory language \
    laptop latency layout lecture ledger legacy lens lesson letter library license lighthouse logger machine magazine manual map \
    market matrix maze memory message metric microscope migration mirror model module monitor museum network notebook number \
    operator orbit outage packet paper parser password patent pattern payment pipeline pixel planet platform plugin pointer \
    policy portrait printer problem processor program project protocol prototype puzzle queue radio reactor recipe record \
    registry report repository review river robot router runtime satellite scanner scheduler schema school screen script sensor \
    server signal sketch socket software solver spreadsheet stack standard startup storage story street student survey switch \
    symbol syntax system table telescope template terminal theory thread timer token tool tracker train transistor tutorial \
    vector vehicle version village vision warehouse watch weather website widget window workflow workshop";

/// Adjectives, separated by blanks.
pub(super) const ADJECTIVES: &str = "accidental ancient anonymous automatic awkward beautiful bitter bold boring brief broken calm careful cheap clever cold \
    compact complete complex concurrent curious dangerous decent deep distant double durable early easy elegant empty encrypted \
    endless equal exact faint fair familiar famous fast final flat flexible foreign forgotten formal fragile free friendly \
    functional future gentle gradual great hidden honest huge humble hybrid idle immutable incremental independent invisible \
    large lazy light little local lonely long loud lucky magnetic manual mature minimal missing modern modest modular narrow \
    native neutral obscure old open optical ordinary parallel patient perfect persistent personal plain portable practical \
    precise private public pure quick quiet random rare raw reactive readable reliable remote robust rough rural scalable secret \
    serious sharp silent simple slow small smart solid spare stable static steady strange strict strong subtle sudden tiny typed \
    uncommon unusual urban useful vague vintage warm weak wild wooden young";

/// Verbs, separated by blanks.
pub(super) const VERBS: &str = "abandon accept adapt adopt animate answer archive assemble audit avoid balance borrow build bypass calibrate capture catch \
    change choose clean collect combine compare compile compose compress configure connect convert copy count cut debug decode \
    defend define delete deliver deploy describe design detect discover divide document draw drop edit encode escape estimate \
    evaluate expand explain explore export extend fix fold follow forget generate grow handle hide hire ignore import improve \
    index inspect invent join judge launch learn leave limit load lose maintain manage map measure merge migrate mock monitor \
    move name negotiate observe open optimize organize package paint parse patch plan predict prevent print profile protect prove \
    publish query question read rebuild record recover reduce refactor release remember remove rename render repair replace \
    rescue restore reuse reverse review rewrite run save scale schedule search sell separate serve share shrink simplify simulate \
    sketch solve sort split start stop store stream study survive switch teach test throw trace train translate trust tune \
    understand update validate visualize wait watch write";

/// The beginnings of invented names, separated by blanks.
pub(super) const HEADS: &str = "ba be bri ca ce co da del dra el fa fen ga gri ha he in jo ka kel la lo ma mer na ne or pa pel qui ra ri sa sel ta tor u va \
    ve wi zan zo";

/// The ends of invented names, separated by blanks.
pub(super) const TAILS: &str = "bex cade dane dor fin gate gen kit lani leaf lith lo max mint mo nara nix nova pad path plex ra rook sync tal tide tora vane \
    via wave zen zo";
