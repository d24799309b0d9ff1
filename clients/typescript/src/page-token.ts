/** Tokens with which a page may report clicks on one decision and do nothing else, signed with the key. */

const WEEK = 7 * 86_400;

/**
 * A token (a JSON Web Token) for a page that shows `decision` of `loop`; no request is sent.
 *
 * It is valid for `seconds`, at most a week, and as long as `key`, which needs the scope `feedback`.
 */
export async function pageToken(key: string, loop: string, decision: string, seconds = 3600): Promise<string> {
  if (!(seconds >= 1 && seconds <= WEEK)) {
    throw new TypeError(`seconds: expected a number from 1 to ${WEEK}, got ${JSON.stringify(seconds)}`);
  }
  const header = { alg: "HS256", typ: "JWT", kid: key.slice(0, "hk_12345678".length) };
  const claims = { loop, decision, exp: Date.now() / 1000 + seconds };
  const text = new TextEncoder();
  const signed = [header, claims].map((part) => encoded(text.encode(JSON.stringify(part)))).join(".");
  const secret = await crypto.subtle.digest("SHA-256", text.encode(key));
  const mac = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", mac, text.encode(signed));
  return `${signed}.${encoded(new Uint8Array(signature))}`;
}

function encoded(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
