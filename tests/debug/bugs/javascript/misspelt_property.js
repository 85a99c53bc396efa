// A property that is written by one name and read by another.
function readConfig() {
  const config = {};
  config.adress = { host: "localhost" }; // FAULT
  return config;
}

function connect() {
  const config = readConfig();
  return config.address.host;
}

connect();
