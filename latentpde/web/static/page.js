// What the page holds at this moment; the parts that change it and the parts that show it share it.

export const $ = (id) => document.getElementById(id);

export const page = {
  examples: [],
  opening: null, // the scene to begin with
  state: null,
  history: null,
  picture: null, // the last answer, decoded
  shown: null, // the field on the map, with its limits
  tool: "sensor",
  data: null, // a user's own file, where one is shown
};
