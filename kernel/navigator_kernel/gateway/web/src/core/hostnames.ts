/** In place of the package `punycode.js`, for the addresses in Markdown: the browser converts names of hosts itself, and
 * they are shown as they are asked for, so that letters that look alike are seen. */

export default {
  /** Throws TypeError for what is not a host's name, which leaves the address as it is written. */
  toASCII: (host: string) => new URL(`http://${host}`).hostname,
  toUnicode: (host: string) => host,
}
