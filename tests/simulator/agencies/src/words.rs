//! Word lists for recalls. All firms are invented.

pub(crate) const PRODUCTS: &[&str] = &[
    "Electric Space Heaters",
    "Gas Ranges",
    "Portable Power Banks",
    "Adjustable Dumbbells",
    "Folding Bicycles",
    "Multi-Purpose Helmets",
    "Six-Drawer Dressers",
    "Pressure Cookers",
    "Cordless Leaf Blowers",
    "Bed Rails",
    "Ceiling Fans",
    "LED Night Lights",
    "Garden Hoses",
    "Pool Drain Covers",
    "Magnetic Building Sets",
    "Scented Candles",
    "Smoke Alarms",
    "Table Saws",
    "Rechargeable Lanterns",
    "Area Rugs",
    "Camping Stoves",
    "Electric Kettles",
    "Patio Umbrellas",
    "Hot Air Fryers",
    "Wall Mirrors",
    "Snow Throwers",
    "Bar Stools",
    "Yoga Balls",
    "Lithium-Ion Batteries",
    "Off-Road Utility Carts",
];

pub(crate) const BABY_PRODUCTS: &[&str] = &[
    "Infant Sleepers",
    "Baby Loungers",
    "Convertible Cribs",
    "Bassinets",
    "Jogging Strollers",
    "High Chairs",
    "Toddler Towers",
    "Nursery Dressers",
    "Silicone Pacifiers",
    "Infant Bouncers",
    "Baby Bath Seats",
    "Crib Bumpers",
    "Infant Swings",
    "Toddler Bed Rails",
];

/// Words of the title, and the sentence of the notice.
pub(crate) const HAZARDS: &[(&str, &str)] = &[
    ("Fire Hazard", "can overheat while charging and ignite, posing a fire hazard"),
    ("Burn Hazard", "can release hot liquid when opened, posing a burn hazard"),
    ("Fall Hazard", "can loosen at the hinge and collapse while in use, posing a fall hazard"),
    ("Laceration Hazard", "have a blade guard that can detach, posing a laceration hazard"),
    (
        "Risk of Serious Injury or Death from Tip-Over and Entrapment",
        "are unstable if they are not anchored to the wall, posing tip-over and entrapment hazards that can result in death or serious injuries to children",
    ),
    ("Choking Hazard", "contain small parts that can separate, posing a choking hazard to young children"),
    ("Suffocation Hazard", "have sides that are too low and an incline that is too steep, posing a suffocation hazard"),
    ("Electric Shock Hazard", "have wiring that can come into contact with the metal housing, posing an electric shock hazard"),
    ("Strangulation Hazard", "have a cord loop that is long enough to go around a child's neck, posing a strangulation hazard"),
    (
        "Violation of Federal Lead Paint Ban",
        "are coated with paint that exceeds the federal limit for lead, posing a risk of lead poisoning",
    ),
    (
        "Magnet Ingestion Hazard",
        "contain magnets stronger than permitted; when swallowed, they can attract each other and cause perforations of the intestine",
    ),
    ("Crash Hazard", "have a fork that can crack, posing crash and injury hazards to the rider"),
];

pub(crate) const COLORS: &[&str] = &["black", "white", "gray", "navy blue", "red", "sage green", "beige", "two-tone walnut"];
pub(crate) const PLACES: &[&str] = &["China", "Vietnam", "United States", "Mexico", "Taiwan", "India", "Thailand"];
pub(crate) const REMEDIES: &[(&str, &str)] = &[
    (
        "Refund",
        "Consumers should immediately stop using the recalled product and contact the firm for a full refund. Consumers will be asked to cut the cord, write \u{201c}Recalled\u{201d} on the product in permanent marker, and send a photo of it to the firm.",
    ),
    (
        "Repair",
        "Consumers should immediately stop using the recalled product and contact the firm to receive a free repair kit with instructions. Consumers who cannot install the kit themselves may request a free in-home installation.",
    ),
    (
        "Replace",
        "Consumers should immediately stop using the recalled product, take it away from children, and contact the firm for a free replacement, including shipping. The firm is contacting all known purchasers directly.",
    ),
    (
        "Dispose",
        "Consumers should immediately stop using the recalled product and dispose of it in accordance with local rules. Do not throw batteries into the trash; municipal collection centers take them.",
    ),
    (
        "New Instructions",
        "Consumers should stop using the recalled product until they have read the new instructions and attached the new warning label, which the firm sends free of charge.",
    ),
];

pub(crate) const FOODS: &[&str] = &[
    "Organic Spinach",
    "Chocolate Hazelnut Spread",
    "Frozen Cut Corn",
    "Raw Milk Cheddar",
    "Peanut Butter Granola",
    "Ready-To-Eat Chicken Salad",
    "Smoked Salmon Slices",
    "Chili Garlic Sauce",
    "Vanilla Ice Cream",
    "Whole Cantaloupe",
    "Enoki Mushrooms",
    "Tahini",
    "Trail Mix",
    "Pumpkin Seeds",
    "Egg Noodles",
    "Oat Bars",
    "Kale Chips",
    "Cold Brew Coffee",
    "Soft Ripened Cheese",
    "Cinnamon Powder",
];
pub(crate) const BABY_FOODS: &[&str] =
    &["Infant Formula with Iron", "Toddler Fruit Puree Pouches", "Baby Food Sweet Potato Jars", "Infant Rice Cereal"];
pub(crate) const DRUGS: &[&str] = &[
    "Metformin Hydrochloride Tablets",
    "Lisinopril Tablets",
    "Eye Drops",
    "Acetaminophen Oral Suspension",
    "Heparin Sodium Injection",
    "Losartan Potassium Tablets",
    "Sodium Chloride Injection",
    "Hydrocortisone Cream",
    "Amoxicillin for Oral Suspension",
    "Loratadine Syrup",
    "Levothyroxine Sodium Tablets",
    "Alcohol-Free Hand Sanitizer",
];
pub(crate) const DEVICES: &[&str] = &[
    "Infusion Pump",
    "Insulin Pump Reservoir",
    "Surgical Stapler",
    "Blood Glucose Test Strips",
    "Ventilator",
    "Patient Monitor",
    "Hip Replacement Stem",
    "Catheter Introducer Kit",
    "Powered Wheelchair",
    "Hemodialysis Set",
    "X-Ray Collimator",
    "Syringe 10 mL",
];
pub(crate) const FOOD_REASONS: &[&str] = &[
    "Product may be contaminated with Listeria monocytogenes.",
    "Undeclared milk and soy.",
    "Undeclared peanuts due to a packaging error.",
    "Potential contamination with Salmonella.",
    "Product may contain pieces of metal.",
    "Product was held at temperatures above the limit.",
    "Elevated levels of lead.",
    "Undeclared sesame; the label lists it in no language.",
    "Potential presence of Clostridium botulinum.",
];
pub(crate) const DRUG_REASONS: &[&str] = &[
    "CGMP Deviations",
    "Failed Dissolution Specifications: out-of-specification result at the 12-month stability time point.",
    "Lack of Assurance of Sterility",
    "Presence of Particulate Matter: glass found in one vial.",
    "Superpotent Drug: assay above the upper limit.",
    "Labeling: Label Mix-up; some bottles carry the label of another strength.",
    "Presence of a nitrosamine impurity above the acceptable daily intake limit.",
];
pub(crate) const DEVICE_REASONS: &[&str] = &[
    "Software may stop an infusion without an audible alarm.",
    "The sterile barrier may be compromised by incomplete seals.",
    "Battery may not hold the stated charge and the device may shut down without warning.",
    "Labeling lists an expiration date that is too late.",
    "Connector may crack under torque, which can lead to leakage.",
    "Test strips may read falsely low results.",
];
pub(crate) const FIRM_TAILS: &[&str] =
    &["Foods Inc.", "Trading Co.", "Laboratories", "Products LLC", "Farms", "Pharma Corp.", "Medical Systems", "Packers Inc."];
pub(crate) const DISTRIBUTIONS: &[&str] = &[
    "Nationwide",
    "Distributed in the following states: NJ, CT, NY, PA.",
    "MI and OH only.",
    "US Nationwide distribution, and to Canada.",
    "Product was distributed to direct accounts in California, Utah, New York, Idaho, and New Jersey.",
    "One wholesaler in Texas, who may have  distributed it further.",
];

/// Name, makes, models.
pub(crate) const MAKERS: &[(&str, &[&str], &[&str])] = &[
    ("Norvik Motor Company", &["NORVIK"], &["TUNDRA LX", "FJORD", "FJORD HYBRID", "SKERRY 4X4"]),
    ("Calder Trucks North America, LLC", &["CALDER", "CALDER PRO"], &["C150", "C250", "C350 CHASSIS CAB", "HAULER"]),
    ("Marlow Vehicles, Inc.", &["MARLOW"], &["AVENUE", "PARKWAY", "PARKWAY EV"]),
    ("Kestrel Motorcycle Works", &["KESTREL"], &["K9", "K9 TOURER", "MERLIN 650"]),
    ("Summit Coach Industries", &["SUMMIT", "SUMMIT COACH"], &["TRAILBLAZE 24B", "VISTA 30", "VISTA 34"]),
    ("Orion Electric Vehicles", &["ORION"], &["ONE", "ONE LONG RANGE", "CROSS"]),
];
pub(crate) const SEAT_MAKERS: &[(&str, &str)] =
    &[("Cradlewell Child Safety", "CRADLEWELL"), ("Little Heron Seating", "LITTLE HERON"), ("Safenest Juvenile", "SAFENEST")];
pub(crate) const SEATS: &[&str] = &["ALLSTAGE CONVERTIBLE", "FIRSTRIDE INFANT SEAT", "BOOST HIGHBACK", "ROTATE 360"];

/// Component, defect, consequence, and the remedy before the letters are sent.
pub(crate) const DEFECTS: &[(&str, &str, &str, &str)] = &[
    (
        "SERVICE BRAKES, HYDRAULIC",
        "The brake booster may leak vacuum over time, which lengthens the pedal stroke.",
        "A reduction in braking performance increases the risk of a crash.",
        "Dealers will inspect and replace the brake booster as necessary, free of charge.",
    ),
    (
        "AIR BAGS:FRONTAL",
        "The inflator of the driver's air bag may have been assembled with too little propellant.",
        "An air bag that does not inflate as designed increases the risk of injury in a crash.",
        "Dealers will replace the driver's air bag module, free of charge.",
    ),
    (
        "FUEL SYSTEM, GASOLINE:DELIVERY:FUEL PUMP",
        "The low-pressure fuel pump may fail because of an impeller that swells.",
        "A fuel pump failure can cause an engine stall while driving, which increases the risk of a crash.",
        "Dealers will replace the fuel pump, free of charge.",
    ),
    (
        "ELECTRICAL SYSTEM:PROPULSION SYSTEM:TRACTION BATTERY",
        "The high-voltage battery may have a damaged separator that can cause a short circuit when fully charged.",
        "A battery short circuit increases the risk of a fire while parked or driving.",
        "Dealers will update the software and replace battery modules as necessary, free of charge.",
    ),
    (
        "BACK OVER PREVENTION: SENSING SYSTEM: CAMERA",
        "The rearview camera image may not display because of a software error.",
        "A rearview camera that does not display an image can reduce the driver's view behind the vehicle, increasing the risk of a crash.",
        "Dealers or over-the-air updates will correct the software, free of charge.",
    ),
    (
        "STEERING:LINKAGES",
        "The tie rod may have been tightened below its specified torque.",
        "A tie rod that detaches can cause a loss of steering control, increasing the risk of a crash.",
        "Dealers will inspect and tighten or replace the tie rods, free of charge.",
    ),
];
pub(crate) const SEAT_DEFECTS: &[(&str, &str, &str, &str)] = &[
    (
        "CHILD SEAT:BUCKLE",
        "The buckle may require more force to release than the standard permits.",
        "A buckle that is hard to release may delay taking a child out of the seat in an emergency, increasing the risk of injury.",
        "The maker will send owners a new buckle with instructions, free of charge.",
    ),
    (
        "CHILD SEAT:SHELL",
        "The shell may crack at the base under load.",
        "A cracked shell may not restrain a child as designed, increasing the risk of injury in a crash.",
        "The maker will replace the seat, free of charge.",
    ),
];

pub(crate) const MEATS: &[(&str, &str)] = &[
    ("Ready-To-Eat Chicken Salad Products", "ensalada de pollo lista para comer"),
    ("Raw Ground Beef Products", "carne molida de res cruda"),
    ("Frozen Beef Ravioli Products", "ravioles de res congelados"),
    ("Pork Sausage Products", "salchichas de cerdo"),
    ("Turkey Jerky Products", "cecina de pavo"),
    ("Liquid Egg Products", "huevo líquido"),
    ("Meat and Poultry Soup Products for Infant and Toddler Meals", "sopas de carne y ave para bebés"),
];

/// Reason, words of the title, words of the Spanish title.
pub(crate) const MEAT_REASONS: &[(&str, &str, &str)] = &[
    ("Product Contamination", "Due to Possible Listeria Contamination", "debido a una posible contaminación con listeria"),
    ("Unreported Allergens", "Due to Misbranding and an Undeclared Allergen", "debido a un alérgeno no declarado"),
    ("Produced Without Benefit of Inspection", "Produced Without the Benefit of Inspection", "producidos sin el beneficio de inspección"),
    ("Import Violation", "Imported Without Benefit of Import Reinspection", "importados sin reinspección"),
    ("Product Contamination", "Due to Possible Foreign Matter Contamination", "debido a una posible contaminación con materia extraña"),
];
pub(crate) const STATES: &[&str] =
    &["Maine", "Massachusetts", "New Hampshire", "Ohio", "Texas", "Utah", "Vermont", "Washington", "Nationwide"];
