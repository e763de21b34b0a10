/** What there is to know about the code of an error, in Markdown. */
export interface Explanation {
  /** What it means, as a sentence. */
  meaning: string;
  /** What commonly leads to it, each as a clause. */
  causes: readonly string[];
  /** What to do, as sentences. */
  remedy: string;
}
