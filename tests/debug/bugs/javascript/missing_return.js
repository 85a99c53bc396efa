// A function that forgets to return what it found.
function findUser(users, name) {
  users.find((user) => user.name === name); // FAULT
}

function cityOf(users, name) {
  const user = findUser(users, name);
  return user.city;
}

console.log(cityOf([{ name: "Ada", city: "London" }], "Ada"));
