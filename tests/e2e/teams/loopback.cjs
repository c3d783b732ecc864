// Preloaded into the Playground, which listens on all interfaces: whatever it opens is for this machine alone.
"use strict";

const { Server } = require("node:net");

const listen = Server.prototype.listen;

Server.prototype.listen = function listenOnLoopback(...given) {
  const ready = given.find((one) => typeof one === "function");
  const wanted = typeof given[0] === "object" && given[0] !== null ? given[0] : { port: Number(given[0] ?? 0) };
  return listen.call(this, { ...wanted, host: "127.0.0.1" }, ready);
};
