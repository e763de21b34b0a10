/**
 * A feature's demands on a store beside the keys themselves. The feature declares them beside its rules, and the store
 * implements them beside the feature's tables: neither keys nor transactions need know them.
 * @typeParam Reader what the feature asks at any time
 * @typeParam Writer the same in a transaction, in which it also changes something
 */
export interface Port<Reader, Writer extends Reader = Reader> {
  readonly name: string;
  /** For the compiler alone. */
  readonly sides?: { reader: Reader; writer: Writer };
}

/** Declares a port. @param name what it is for, such as `sessions` */
export function declarePort<Reader, Writer extends Reader = Reader>(name: string): Port<Reader, Writer> {
  return { name };
}

/** Gives the ports that features read. */
export interface ReadPorts {
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Reader;
}

/** Gives the ports that features read and write in a transaction. */
export interface WritePorts {
  port<Reader, Writer extends Reader>(port: Port<Reader, Writer>): Writer;
}
