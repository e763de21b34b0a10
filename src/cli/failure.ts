/**
 * A failure that the user has been told about. The command throws it to the program that ran it, which may be a host's
 * `config.runCommand`, with its code and message.
 */
export class ReportedFailure extends Error {
  /** Stable, as in the JSON that was printed. */
  readonly code: string;
  /** Tells oclif the exit code. */
  readonly oclif: { readonly exit: number };
  /** Keeps oclif from printing it again. */
  readonly skipOclifErrorHandling = true;

  constructor({ code, message, exit }: { code: string; message: string; exit: number }) {
    super(message);
    this.code = code;
    this.oclif = { exit };
  }
}
