//! What a person declares of the price of a platform: a table `[price]` of a declaration file.

/// Hours of a year: 365.25 days.
const HOURS: f64 = 8766.0;

/// What is declared of both sides.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Currency of every amount, the same on both sides.
    #[serde(default)]
    pub currency: String,
    /// Of A.
    #[serde(default)]
    pub a: Price,
    /// Of B.
    #[serde(default)]
    pub b: Price,
}

/// What is declared of one side; everything is of one device.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of an hour of a device, power included.
    pub device_hour: Option<f64>,
    /// Price of buying a device, with its share of the server.
    pub purchase: Option<f64>,
    /// Power of a device with its share of the server, W: used where none was recorded.
    pub power_w: Option<f64>,
    /// Power that the data centre draws over that of its servers (power usage effectiveness, ISO/IEC 30134-2).
    pub pue: Option<f64>,
    /// Price of a kilowatt hour.
    pub energy_price: Option<f64>,
    /// Years over which the purchase is written off.
    pub years: Option<f64>,
    /// Share of that time in which the device works.
    pub utilisation: Option<f64>,
    /// Rack units of a device with its share of the server.
    pub rack_units: Option<f64>,
    /// Devices of the run, where it does not say.
    pub devices: Option<f64>,
    /// Cost of moving to this side, once.
    pub migration: Option<f64>,
    /// What is known of when it can be had.
    pub supply: Option<String>,
    /// What may go wrong with it.
    pub risk: Option<String>,
}

impl Prices {
    /// Reads the table.
    ///
    /// # Errors
    /// A key that there is none of, and an amount that is no price.
    pub fn read(table: toml::Table) -> Result<Self, String> {
        let prices: Self = table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        for (side, price) in [("a", &prices.a), ("b", &prices.b)] {
            for (key, value) in price.numbers() {
                let share = key == "utilisation";
                let least = if key == "pue" { 1.0 } else { 0.0 };
                let fits = value.is_finite() && value >= least && (!share || value <= 1.0);
                let fits = fits && (value > 0.0 || matches!(key, "migration" | "energy_price"));
                if !fits {
                    return Err(format!("price.{side}.{key} = {value} cannot be; {}", hint(key)));
                }
            }
        }
        Ok(prices)
    }
}

impl Price {
    fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("device_hour", self.device_hour),
            ("purchase", self.purchase),
            ("power_w", self.power_w),
            ("pue", self.pue),
            ("energy_price", self.energy_price),
            ("years", self.years),
            ("utilisation", self.utilisation),
            ("rack_units", self.rack_units),
            ("devices", self.devices),
            ("migration", self.migration),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }

    /// Cost of an hour in which a device works: what is declared, else the purchase written off over the hours worked and the power
    /// of one hour. `power_w` is what was recorded, if it was. `None` with the key that is missing.
    ///
    /// # Errors
    /// The key that has to be declared.
    pub fn hour(&self, power_w: Option<f64>) -> Result<f64, &'static str> {
        if let Some(hour) = self.device_hour {
            return Ok(hour);
        }
        let purchase = self.purchase.ok_or("device_hour")?;
        Ok(purchase / self.worked()? + self.energy_hour(power_w)?)
    }

    /// Price of buying a device at which an hour of it costs so much; `None` where it would have to be free.
    pub fn purchase_at(&self, hour: f64, power_w: Option<f64>) -> Option<f64> {
        let own = (hour - self.energy_hour(power_w).ok()?) * self.worked().ok()?;
        (self.device_hour.is_none() && self.purchase.is_some() && own > 0.0).then_some(own)
    }

    /// Hours that a device works before it is written off.
    fn worked(&self) -> Result<f64, &'static str> {
        Ok(self.years.ok_or("years")? * HOURS * self.utilisation.ok_or("utilisation")?)
    }

    /// Cost of the power of a device for an hour.
    fn energy_hour(&self, power_w: Option<f64>) -> Result<f64, &'static str> {
        let power = power_w.or(self.power_w).ok_or("power_w")?;
        Ok(power / 1e3 * self.pue.ok_or("pue")? * self.energy_price.ok_or("energy_price")?)
    }
}

fn hint(key: &str) -> &'static str {
    match key {
        "utilisation" => "write a share above 0 and at most 1",
        "pue" => "write a ratio of at least 1",
        _ => "write a number above 0",
    }
}
