"""Dispatch over NATS JetStream, and the worker that carries out such packets; imported only where a broker is named."""
