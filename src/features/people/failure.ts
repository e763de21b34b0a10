/** A failed sign-in, with a message for the person. The log has what the provider or proxy did. */
export class SignInFailed extends Error {
  readonly status: 400 | 403 | 429 | 503;
  /** The reason in a word, for the log. */
  readonly reason: string;

  constructor(status: SignInFailed['status'], message: string, reason: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.reason = reason;
  }
}
