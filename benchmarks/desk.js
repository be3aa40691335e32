// A refund desk in Node. It does not read what the shop says of a refund, and its mail is sent again if no answer comes
// (a lost reply taken for a failure, as in stripe/ai 402).
const shop = process.env.SHOP_URL;
const ask = (path, body) =>
  fetch(shop + path, {
    ...(body && { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    signal: AbortSignal.timeout(1000),
  });
const main = async () => {
  const found = await ask("/orders/17");
  if (!found.ok) throw new Error("the order cannot be read");
  const order = await found.json();
  await ask("/refunds", { order: 17, amount: order.total }); // bug: swallows POST /refunds
  for (let n = 0; n < 2; n++) {
    try {
      const sent = await ask("/mails", { to: order.mail }); // bug: repeats POST /mails
      if (!sent.ok) throw new Error("the mail was not sent");
      break;
    } catch (error) {
      if (error.name !== "TimeoutError") throw error;
    }
  }
  console.log("Order 17 is refunded.");
};
main();
