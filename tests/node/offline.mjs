// Loaded before an example server by `--import`: what the server fetches from the internet is answered here.
const page = (name) => [1, 2].map((number) => `<a href="/wiki/${name}_${number}">${name} ${number}</a>`).join("");

globalThis.fetch = async (address) => {
  const { hostname, pathname } = new URL(address);
  if (hostname === "en.wikipedia.org") return new Response(page(pathname.split("/").at(-1)));
  if (pathname.endsWith(".mp4")) return new Response(new Uint8Array(1000));
  throw new TypeError(`nothing here is at ${address}`);
};
