/** Why somebody is not signed in, in words for them; the log has what a provider or a proxy did. */
export class SignInFailed extends Error {
  readonly status: 400 | 403 | 429 | 503;
  /** What happened, in a word for the log. */
  readonly reason: string;

  constructor(status: SignInFailed['status'], message: string, reason: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.reason = reason;
  }
}
