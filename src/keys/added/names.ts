/** A name in the spelling of flags and columns. */
export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The name of a package with "_" in the place of other characters. */
export function snake(name: string): string {
  return name.replaceAll(/[^a-z0-9]+/g, '_').replace(/^_/, '');
}
