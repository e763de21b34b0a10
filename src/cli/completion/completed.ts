/** What a script completes. */
export interface Completed {
  /** The name of the program. */
  bin: string;
  /** How the program is asked, as a shell reads it. */
  ask: string;
  /** A name for the functions of the script. */
  prefix: string;
  /** The commands that are completed, of a program that has others as well. */
  topics: readonly string[] | undefined;
}
